// Which calls are taken, and with what. Whatever is decided here must come out the same on every rank.
#include "plugin/plan.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "plugin/nccl_abi.hpp"

namespace onehop::test {
namespace {

constexpr size_t kHuge = std::numeric_limits<size_t>::max();

struct TypeRow {
  nccl::DataType type;
  size_t bytes;
  Element element;
  bool fp8 = false;
};

const TypeRow kTypes[] = {
    {nccl::kInt8, 1, Element::kInt8},
    {nccl::kUint8, 1, Element::kUint8},
    {nccl::kInt32, 4, Element::kInt32},
    {nccl::kUint32, 4, Element::kUint32},
    {nccl::kInt64, 8, Element::kInt64},
    {nccl::kUint64, 8, Element::kUint64},
    {nccl::kFloat16, 2, Element::kFloat16},
    {nccl::kFloat32, 4, Element::kFloat32},
    {nccl::kFloat64, 8, Element::kFloat64},
    {nccl::kBfloat16, 2, Element::kBfloat16},
    {nccl::kFloat8e4m3, 1, Element::kFloat8e4m3, true},
    {nccl::kFloat8e5m2, 1, Element::kFloat8e5m2, true},
};

const std::pair<nccl::RedOp, Reduction> kOperators[] = {{nccl::kSum, Reduction::kSum},
                                                        {nccl::kProd, Reduction::kProd},
                                                        {nccl::kMax, Reduction::kMax},
                                                        {nccl::kMin, Reduction::kMin},
                                                        {nccl::kAvg, Reduction::kAvg}};

/// Operators that the user made have numbers from 5 on (ncclNumOps).
const int kNoOperators[] = {5, 6, 1000, std::numeric_limits<int>::max(), -1, std::numeric_limits<int>::min()};

Plan plan_of(uint64_t max_bytes, bool takes_fp8 = true) {
  Plan plan;
  plan.add(max_bytes, Method::kOneShot);
  plan.layout = {2, 4096, 0};
  plan.takes_fp8 = takes_fp8;
  return plan;
}

/// Values that a caller may pass by mistake, or that a later NCCL may add.
const int kNoTypes[] = {-1, 12, 13, 255, 1 << 30, std::numeric_limits<int>::min()};

TEST(Plan, EveryTypeHasItsSizeAndElement) {
  for (const TypeRow& row : kTypes) {
    EXPECT_EQ(bytes_of(row.type), row.bytes) << row.type;
    EXPECT_EQ(element_of(row.type), row.element) << row.type;
    EXPECT_EQ(element_size(row.element), row.bytes) << row.type;
  }
  for (const int value : kNoTypes) {
    EXPECT_EQ(bytes_of(static_cast<nccl::DataType>(value)), 0u) << value;
    EXPECT_EQ(element_of(static_cast<nccl::DataType>(value)), std::nullopt) << value;
  }
}

TEST(Plan, EveryOperatorHasItsReduction) {
  for (const auto& [op, reduction] : kOperators) EXPECT_EQ(reduction_of(op), reduction) << op;
  for (const int op : kNoOperators) EXPECT_EQ(reduction_of(static_cast<nccl::RedOp>(op)), std::nullopt) << op;
}

TEST(Decide, TakesEveryTypeAndOperator) {
  for (const bool takes_fp8 : {false, true}) {
    const Plan plan = plan_of(4096, takes_fp8);
    for (const TypeRow& row : kTypes) {
      const bool takes = takes_fp8 || !row.fp8;
      for (const auto& [op, reduction] : kOperators) {
        const Decision decision = decide({1, row.type, op}, plan);
        ASSERT_EQ(decision.served.has_value(), takes) << row.type << ", operator " << op;
        if (takes) {
          EXPECT_EQ(decision.served->element, row.element) << row.type << ", operator " << op;
          EXPECT_EQ(decision.served->reduction, reduction) << row.type << ", operator " << op;
        } else {
          EXPECT_EQ(decision.pass, Pass::kType) << row.type << ", operator " << op;
        }
      }
      for (const int op : kNoOperators) {
        const Decision decision = decide({1, row.type, static_cast<nccl::RedOp>(op)}, plan);
        EXPECT_FALSE(decision.served) << row.type << ", operator " << op;
        EXPECT_EQ(decision.pass, takes ? Pass::kOperator : Pass::kType) << row.type << ", operator " << op;
      }
    }
    for (const int value : kNoTypes) {
      const Decision decision = decide({1, static_cast<nccl::DataType>(value), nccl::kSum}, plan);
      EXPECT_FALSE(decision.served) << value;
      EXPECT_EQ(decision.pass, Pass::kType) << value;
    }
  }
}

TEST(Decide, TakesUpToTheLimitAndNotOneElementMore) {
  for (const uint64_t limit : {uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{15}, uint64_t{16},
                               uint64_t{65535}, uint64_t{65536}, uint64_t{65537}, uint64_t{8} << 20})
    for (const TypeRow& row : kTypes) {
      const size_t most = limit / row.bytes;
      if (most > 0) {
        EXPECT_TRUE(decide({most, row.type, nccl::kSum}, plan_of(limit)).served)
            << row.type << " at " << limit;
      }
      const Decision more = decide({most + 1, row.type, nccl::kSum}, plan_of(limit));
      EXPECT_FALSE(more.served) << row.type << " over " << limit;
      EXPECT_EQ(more.pass, Pass::kSize);
    }
}

TEST(Decide, LeavesEmptyCallsToNccl) {
  for (const TypeRow& row : kTypes) {
    const Decision decision = decide({0, row.type, nccl::kSum}, plan_of(65536));
    EXPECT_FALSE(decision.served);
    EXPECT_EQ(decision.pass, Pass::kEmpty);
  }
}

/// A count whose bytes would wrap to a small number.
TEST(Decide, AHugeCountDoesNotLookSmall) {
  for (const TypeRow& row : kTypes) {
    // Times row.bytes: 0. No number of bytes can wrap.
    const size_t wraps = row.bytes == 1 ? kHuge - 8 : kHuge / row.bytes + 1;
    for (const size_t count : {wraps, wraps + 1, wraps + 7, kHuge, kHuge - 1, kHuge / 2, kHuge / 2 + 2}) {
      const Decision decision = decide({count, row.type, nccl::kSum}, plan_of(65536));
      EXPECT_FALSE(decision.served) << row.type << " x " << count;
      EXPECT_EQ(decision.pass, Pass::kSize);
    }
  }
}

/// The last call of a range and the first of the next one, to the element. Flag words are twice as many bytes
/// on the link, so the types that need them leave each range but the last at half its size.
TEST(Decide, TheSizeChoosesTheMethod) {
  Plan plan;
  plan.layout = {4, 4096, 4096};
  plan.islands = equal_islands(4, 2);
  plan.takes_fp8 = true;
  const std::pair<uint64_t, std::optional<Method>> ranges[] = {{1000, Method::kOneShot},
                                                               {4096, Method::kTwoShotPull},
                                                               {20000, std::nullopt},
                                                               {65541, Method::kIslands},
                                                               {1 << 20, Method::kTwoShot}};
  for (const auto& [bytes, method] : ranges) plan.add(bytes, method);
  const auto expect = [&](const TypeRow& row, size_t count, std::optional<Method> method) {
    const Decision decision = decide({count, row.type, nccl::kSum}, plan);
    ASSERT_EQ(decision.served.has_value(), method.has_value()) << row.type << " x " << count;
    if (method) {
      EXPECT_EQ(decision.served->method, *method) << row.type << " x " << count;
    } else {
      EXPECT_EQ(decision.pass, Pass::kSlower) << row.type << " x " << count;
    }
  };
  for (const TypeRow& row : kTypes) {
    expect(row, 1, Method::kOneShot);
    for (size_t i = 0; i < std::size(ranges); ++i) {
      const auto [bytes, method] = ranges[i];
      const bool last = i + 1 == std::size(ranges);
      const size_t most = bytes / row.bytes / (last ? 1 : Layout::expansion(word_kind(row.element)));
      expect(row, most, method);
      if (!last) expect(row, most + 1, ranges[i + 1].second);
    }
    EXPECT_EQ(decide({(1 << 20) / row.bytes + 1, row.type, nccl::kSum}, plan).pass, Pass::kSize);
  }
}

/// What one operation can carry goes with the type: more memory for each pack of payload, and unrounded sums.
TEST(Decide, ThePieceIsWhatOneOperationCarries) {
  Plan plan;
  plan.layout = {4, 4096, 0};
  plan.takes_fp8 = true;
  plan.islands = equal_islands(4, 2);
  plan.add(1 << 20, Method::kOneShot);
  EXPECT_EQ(decide({1, nccl::kFloat32, nccl::kSum}, plan).served->piece, 4096u * 4);
  EXPECT_EQ(decide({1, nccl::kFloat8e4m3, nccl::kSum}, plan).served->piece, 4096u * 16);
  EXPECT_EQ(decide({1, nccl::kInt32, nccl::kSum}, plan).served->piece, 2048u * 4);
  EXPECT_EQ(decide({1, nccl::kFloat64, nccl::kSum}, plan).served->piece, 2048u * 2);
  plan.ranges[0].method = Method::kTwoShot;
  EXPECT_EQ(decide({1, nccl::kFloat32, nccl::kSum}, plan).served->piece, 2048u * 4 * 4);
  plan.ranges[0].method = Method::kIslands;
  EXPECT_EQ(decide({1, nccl::kFloat32, nccl::kSum}, plan).served->piece, 4096u / 3 * 2 * 4);
  EXPECT_EQ(decide({1, nccl::kBfloat16, nccl::kSum}, plan).served->piece, 4096u / 4 * 2 * 8);
  EXPECT_EQ(decide({1, nccl::kFloat8e4m3, nccl::kSum}, plan).served->piece, 4096u / 6 * 2 * 16);
}

TEST(Plan, RangesRise) {
  Plan plan;
  EXPECT_EQ(plan.max_bytes(), 0u);
  plan.add(0, Method::kOneShot);
  EXPECT_EQ(plan.count, 0u) << "a range that holds no call";
  plan.add(100, Method::kOneShot);
  plan.add(100, Method::kTwoShot);
  plan.add(50, Method::kTwoShot);
  EXPECT_EQ(plan.count, 1u);
  plan.add(101, Method::kTwoShot);
  EXPECT_EQ(plan.count, 2u);
  plan.add(200, Method::kTwoShot);
  EXPECT_EQ(plan.count, 2u) << "the same range goes on";
  EXPECT_EQ(plan.max_bytes(), 200u);
  for (uint64_t bytes = 300; bytes < 10000; bytes += 100)
    plan.add(bytes, bytes % 200 == 0 ? std::optional(Method::kOneShot) : std::nullopt);
  EXPECT_EQ(plan.count, plan.ranges.size()) << "no more than there is room for";
}

TEST(Plan, IsEmptyWhereNcclServesEveryCall) {
  Plan plan;
  EXPECT_TRUE(plan.is_empty());
  plan.add(100, std::nullopt);
  EXPECT_TRUE(plan.is_empty());
  plan.add(200, Method::kOneShot);
  plan.add(300, std::nullopt);
  EXPECT_FALSE(plan.is_empty());
}

TEST(Decide, APlanOfNoSizeTakesNothing) {
  EXPECT_EQ(decide({1, nccl::kInt8, nccl::kSum}, Plan{}).pass, Pass::kSize);
  EXPECT_EQ(decide({0, nccl::kInt8, nccl::kSum}, Plan{}).pass, Pass::kEmpty);
}

/// From a copy elsewhere, in another order, in another environment: the rank, the process and what it decided
/// before are no part of a decision.
TEST(Decide, ComesFromTheSharedFactsAndThePlanAlone) {
  Settings settings;
  settings.max_bytes = 300000;
  const Plan plan = *make_plan(settings, StagingKind::kPeer, 5);
  std::vector<SharedFacts> calls;
  for (const TypeRow& row : kTypes)
    for (const size_t count : {size_t{0}, size_t{1}, size_t{20000}, size_t{80000}, size_t{300000}, kHuge})
      for (const int op : {0, 4, 5}) calls.push_back({count, row.type, static_cast<nccl::RedOp>(op)});
  const auto decided = [](const SharedFacts& call, const Plan& with) {
    const Decision d = decide(call, with);
    return d.served ? std::vector<size_t>{1, static_cast<size_t>(d.served->element),
                                          static_cast<size_t>(d.served->reduction),
                                          static_cast<size_t>(d.served->method), d.served->piece}
                    : std::vector<size_t>{0, static_cast<size_t>(d.pass)};
  };
  std::vector<std::vector<size_t>> forwards, backwards(calls.size());
  for (const SharedFacts& call : calls) forwards.push_back(decided(call, plan));
  setenv("ONEHOP_MAX_BYTES", "0", 1);
  setenv("ONEHOP_ALGO", "twoshot", 1);
  const auto copy = std::make_unique<Plan>(plan);
  for (size_t i = calls.size(); i-- > 0;) backwards[i] = decided(calls[i], *copy);
  unsetenv("ONEHOP_MAX_BYTES");
  unsetenv("ONEHOP_ALGO");
  EXPECT_EQ(forwards, backwards);
}

/// Written out, not derived: the ranks of a job may run different releases, which must all answer like this.
TEST(StartsSetUp, IsTheSameInEveryRelease) {
  const std::pair<size_t, bool> cases[] = {{0, false},      {1, true},        {65536, true}, {8388607, true},
                                           {8388608, true}, {8388609, false}, {kHuge, false}};
  for (const auto& [count, starts] : cases)
    for (const TypeRow& row : kTypes)
      for (const int op : {0, 1, 4, 5, 1000})
        EXPECT_EQ(starts_set_up({count, row.type, static_cast<nccl::RedOp>(op)}), starts)
            << count << ", type " << row.type << ", operator " << op;
}

/// The signature leaves no way to the settings; the process's own must not sneak in either.
TEST(StartsSetUp, DoesNotDependOnSettings) {
  for (const char* value : {"0", "8M", "nonsense"}) {
    setenv("ONEHOP_MAX_BYTES", value, 1);
    setenv("ONEHOP_ENABLE", "0", 1);
    EXPECT_TRUE(starts_set_up({1, nccl::kFloat32, nccl::kSum}));
    EXPECT_TRUE(starts_set_up({8388608, nccl::kInt8, nccl::kMax}));
  }
  unsetenv("ONEHOP_MAX_BYTES");
  unsetenv("ONEHOP_ENABLE");
}

}  // namespace
}  // namespace onehop::test
