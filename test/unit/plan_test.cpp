// Which calls are taken. Whatever is decided here must come out the same on every rank.
#include "plugin/plan.hpp"

#include <gtest/gtest.h>

#include <limits>

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
  plan.max_bytes = max_bytes;
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

/// What NCCL does with fp8 is not known before the ranks have told.
TEST(Plan, LeavesFp8ToNcclAtFirst) {
  EXPECT_FALSE(make_plan(Settings{}, 2).takes_fp8);
}

TEST(Decide, TakesUpToTheLimitAndNotOneElementMore) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{15}, uint64_t{16},
                               uint64_t{65535}, uint64_t{65536}, uint64_t{65537}})
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

TEST(Plan, StagingStaysWithinItsBudget) {
  Settings settings;
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (const uint64_t asked : {uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{65536}, uint64_t{1} << 20,
                                 uint64_t{8} << 20, uint64_t{1} << 40}) {
      settings.max_bytes = asked;
      const Plan plan = make_plan(settings, ranks);
      EXPECT_LE(plan.max_bytes, asked);
      EXPECT_GE(uint64_t{capacity_for(plan)} * sizeof(Pack), plan.max_bytes)
          << "a call would not fit its region";
      const uint64_t staging = InboxLayout{ranks, capacity_for(plan)}.bytes();
      EXPECT_LE(staging + sizeof(State), kStagingBudget) << ranks << " ranks, " << asked << " bytes";
      // Not less than what the memory holds, either.
      const uint64_t one_pack_more = InboxLayout{ranks, capacity_for(plan) + 1}.bytes();
      if (plan.max_bytes < asked) {
        EXPECT_GT(one_pack_more + sizeof(State), kStagingBudget) << ranks;
      }
    }
}

TEST(Plan, TheDefaultLimitFitsForEveryNumberOfRanks) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    EXPECT_EQ(make_plan(Settings{}, ranks).max_bytes, Settings{}.max_bytes) << ranks;
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
