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
  std::optional<Element> element;
};

const TypeRow kTypes[] = {
    {nccl::kInt8, 1, {}},
    {nccl::kUint8, 1, {}},
    {nccl::kInt32, 4, Element::kInteger32},
    {nccl::kUint32, 4, Element::kInteger32},
    {nccl::kInt64, 8, Element::kInteger64},
    {nccl::kUint64, 8, Element::kInteger64},
    {nccl::kFloat16, 2, Element::kFloat16},
    {nccl::kFloat32, 4, Element::kFloat32},
    {nccl::kFloat64, 8, Element::kFloat64},
    {nccl::kBfloat16, 2, Element::kBfloat16},
    {nccl::kFloat8e4m3, 1, {}},
    {nccl::kFloat8e5m2, 1, {}},
};

/// Values that a caller may pass by mistake, or that a later NCCL may add.
const int kNoTypes[] = {-1, 12, 13, 255, 1 << 30, std::numeric_limits<int>::min()};

TEST(Plan, EveryTypeHasItsSizeAndElement) {
  for (const TypeRow& row : kTypes) {
    EXPECT_EQ(bytes_of(row.type), row.bytes) << row.type;
    EXPECT_EQ(element_of(row.type), row.element) << row.type;
    if (row.element) {
      EXPECT_EQ(element_size(*row.element), row.bytes) << row.type;
    }
  }
  for (const int value : kNoTypes) {
    EXPECT_EQ(bytes_of(static_cast<nccl::DataType>(value)), 0u) << value;
    EXPECT_EQ(element_of(static_cast<nccl::DataType>(value)), std::nullopt) << value;
  }
}

TEST(Decide, TakesSumsOfServedTypesOnly) {
  const Plan plan{4096};
  for (const TypeRow& row : kTypes) {
    const Decision decision = decide({1, row.type, nccl::kSum}, plan);
    EXPECT_EQ(decision.element, row.element) << row.type;
    if (!row.element) {
      EXPECT_EQ(decision.pass, Pass::kType) << row.type;
    }
    // User-defined operators have numbers from 5 on.
    for (const int op : {1, 2, 3, 4, 5, 6, 1000, -1, std::numeric_limits<int>::max()}) {
      const Decision other = decide({1, row.type, static_cast<nccl::RedOp>(op)}, plan);
      EXPECT_EQ(other.element, std::nullopt) << row.type << ", operator " << op;
      EXPECT_EQ(other.pass, row.element ? Pass::kOperator : Pass::kType) << row.type << ", operator " << op;
    }
  }
  for (const int value : kNoTypes)
    EXPECT_EQ(decide({1, static_cast<nccl::DataType>(value), nccl::kSum}, plan).element, std::nullopt)
        << value;
}

TEST(Decide, TakesUpToTheLimitAndNotOneElementMore) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{15}, uint64_t{16},
                               uint64_t{65535}, uint64_t{65536}, uint64_t{65537}})
    for (const TypeRow& row : kTypes) {
      if (!row.element) continue;
      const size_t most = limit / row.bytes;
      if (most > 0) {
        EXPECT_TRUE(decide({most, row.type, nccl::kSum}, {limit}).element) << row.type << " at " << limit;
      }
      const Decision more = decide({most + 1, row.type, nccl::kSum}, {limit});
      EXPECT_FALSE(more.element) << row.type << " over " << limit;
      EXPECT_EQ(more.pass, Pass::kSize);
    }
}

TEST(Decide, LeavesEmptyCallsToNccl) {
  for (const TypeRow& row : kTypes) {
    const Decision decision = decide({0, row.type, nccl::kSum}, {65536});
    EXPECT_FALSE(decision.element);
    EXPECT_EQ(decision.pass, Pass::kEmpty);
  }
}

/// A count whose bytes would wrap to a small number.
TEST(Decide, AHugeCountDoesNotLookSmall) {
  for (const TypeRow& row : kTypes) {
    if (!row.element) continue;
    const size_t wraps = kHuge / row.bytes + 1;  // times row.bytes: 0
    for (const size_t count : {wraps, wraps + 1, wraps + 7, kHuge, kHuge - 1, kHuge / 2, kHuge / 2 + 2}) {
      const Decision decision = decide({count, row.type, nccl::kSum}, {65536});
      EXPECT_FALSE(decision.element) << row.type << " x " << count;
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
