// From times to a plan: who wins where, by how much, and what is said of it.
#include "plugin/measure/choose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "plugin/measure/times_record.hpp"

namespace onehop::test {
namespace {

constexpr std::optional<Method> kNccl = std::nullopt;
constexpr Method kOne = Method::kOneShot, kTwo = Method::kTwoShot, kPull = Method::kOneShotPull;

struct Expected {
  uint64_t max_bytes;
  std::optional<Method> method;
};

Plan chosen(const Timings& timings) {
  Plan plan;
  choose(timings, plan);
  return plan;
}

void expect_ranges(const Timings& timings, const std::vector<Expected>& expected) {
  const Plan plan = chosen(timings);
  ASSERT_EQ(plan.count, expected.size()) << describe(plan);
  for (uint32_t r = 0; r < plan.count; ++r) {
    EXPECT_EQ(plan.ranges[r].max_bytes, expected[r].max_bytes) << describe(plan);
    EXPECT_EQ(plan.ranges[r].method, expected[r].method) << describe(plan);
  }
}

TEST(Choose, NcclKeepsWhatIsNotClearlyFaster) {
  expect_ranges({{1024}, {{kNccl, {100}}, {kOne, {96}}}}, {{1024, kNccl}});
  expect_ranges({{1024}, {{kNccl, {100}}, {kOne, {94}}}}, {{1024, kOne}});
  // In whichever order they stand.
  expect_ranges({{1024}, {{kOne, {96}}, {kNccl, {100}}}}, {{1024, kNccl}});
  expect_ranges({{1024}, {{kOne, {94}}, {kNccl, {100}}}}, {{1024, kOne}});
}

TEST(Choose, APlanOfNcclAloneIsEmpty) {
  const Plan plan = chosen({{1024, 4096, 16384}, {{kNccl, {10, 20, 30}}, {kOne, {10, 21, 90}}}});
  EXPECT_TRUE(plan.is_empty());
  EXPECT_EQ(plan.count, 1u);
  EXPECT_EQ(plan.max_bytes(), 16384u);
  EXPECT_FALSE(chosen({{1024, 4096}, {{kNccl, {10, 20}}, {kOne, {5, 50}}}}).is_empty());
}

TEST(Choose, ForgetsWhatThePlanHeldBefore) {
  Plan plan;
  plan.add(1 << 20, kTwo);
  choose({{1024}, {{kNccl, {10}}, {kOne, {5}}}}, plan);
  ASSERT_EQ(plan.count, 1u);
  EXPECT_EQ(plan.max_bytes(), 1024u);
  EXPECT_EQ(plan.ranges[0].method, kOne);
}

/// 10 us between them at 1000 bytes, 30 us the other way at 5000: they cross a quarter of the way.
TEST(Choose, MethodsCrossWhereStraightLinesDo) {
  expect_ranges({{1000, 5000}, {{kNccl, {1000, 1000}}, {kOne, {10, 80}}, {kTwo, {20, 50}}}},
                {{2000, kOne}, {5000, kTwo}});
}

/// What crosses is NCCL's time less the margin: 95 of 100.
TEST(Choose, NcclCrossesWithItsMargin) {
  expect_ranges({{1000, 5000}, {{kNccl, {100, 100}}, {kOne, {85, 125}}}}, {{2000, kOne}, {5000, kNccl}});
  expect_ranges({{1000, 5000}, {{kNccl, {100, 100}}, {kOne, {125, 85}}}}, {{4000, kNccl}, {5000, kOne}});
}

TEST(Choose, NcclMayServeTheMiddle) {
  expect_ranges(
      {{1000, 2000, 3000}, {{kNccl, {100, 100, 100}}, {kOne, {75, 115, 195}}, {kTwo, {300, 115, 75}}}},
      {{1500, kOne}, {2500, kNccl}, {3000, kTwo}});
}

TEST(Choose, MethodsAreLoyalAgainstSmallDifferences) {
  const std::vector<Time> nccl = {100, 100, 100};
  const std::vector<uint64_t> sizes = {1000, 2000, 3000};
  // 6 % better is not enough to change, 8 % is, and so is 2 % at the first size.
  expect_ranges({sizes, {{kNccl, nccl}, {kOne, {50, 50, 50}}, {kTwo, {60, 47, 47}}}}, {{3000, kOne}});
  expect_ranges({{1000, 2000}, {{kNccl, {100, 100}}, {kOne, {50, 50}}, {kTwo, {58, 46}}}},
                {{1666, kOne}, {2000, kTwo}});
  expect_ranges({sizes, {{kNccl, nccl}, {kOne, {50, 50, 50}}, {kTwo, {49, 49, 49}}}}, {{3000, kTwo}});
}

/// A method that falls behind NCCL goes at once, however little: nor does NCCL's turn bind the next size.
TEST(Choose, LoyaltyIsNotForNcclNorAgainstIt) {
  expect_ranges({{1000, 2000}, {{kNccl, {100, 100}}, {kOne, {94, 96}}}}, {{1500, kOne}, {2000, kNccl}});
  expect_ranges({{1000, 2000}, {{kNccl, {100, 100}}, {kOne, {96, 94}}}}, {{1500, kNccl}, {2000, kOne}});
}

/// What counts against NCCL is the slow samples of the one side and the fast ones of the other.
TEST(Choose, NoiseIsNcclsAdvantage) {
  const Time nccl(100, 80, 120);
  expect_ranges({{1024}, {{kNccl, {nccl}}, {kOne, {Time(70, 60, 79)}}}}, {{1024, kOne}});
  expect_ranges({{1024}, {{kNccl, {nccl}}, {kOne, {Time(70, 60, 81)}}}}, {{1024, kNccl}});
  // Of those that are clearly faster the best, however it scatters.
  expect_ranges({{1024}, {{kNccl, {nccl}}, {kOne, {Time(70, 60, 79)}}, {kTwo, {Time(71, 71, 71)}}}},
                {{1024, kOne}});
  // Between sizes too: 60 us below NCCL's fast samples at 1000, 20 us above them at 5000.
  expect_ranges({{1000, 5000}, {{kNccl, {nccl, nccl}}, {kOne, {Time(15, 10, 20), Time(85, 70, 100)}}}},
                {{4000, kOne}, {5000, kNccl}});
  // A method is not loyal to one that does not serve the size.
  expect_ranges(
      {{1000, 5000},
       {{kNccl, {nccl, nccl}}, {kOne, {Time(10), Time(70, 60, 100)}}, {kTwo, {Time(20), Time(71, 71, 71)}}}},
      {{4111, kOne}, {5000, kTwo}});
}

/// Each is better than NCCL on its side, and both are worse where they cross.
TEST(Choose, NcclMayServeBetweenTwoSizes) {
  expect_ranges({{1000, 2000}, {{kNccl, {100, 100}}, {kOne, {45, 195}}, {kTwo, {195, 45}}}},
                {{1333, kOne}, {1666, kNccl}, {2000, kTwo}});
}

TEST(Times, StraySamplesCountForNothing) {
  const Time time = time_of({9, 1, 5, 100, 6, 4, 7, 8});
  EXPECT_EQ(time.us, 6.5);
  EXPECT_EQ(time.fast, 4);
  EXPECT_EQ(time.slow, 9);
  EXPECT_EQ(time_of({50, 3, 2}).us, 3);
  EXPECT_EQ(time_of({3, 1}).us, 2);
  EXPECT_EQ(time_of({3, 1}).fast, 1);
  EXPECT_EQ(time_of({3, 1}).slow, 3);
  EXPECT_FALSE(Time().known());
  EXPECT_TRUE(time.known());
  const Time both = slowest(time, {5, 5, 10});
  EXPECT_EQ(both.us, 6.5);
  EXPECT_EQ(both.fast, 5);
  EXPECT_EQ(both.slow, 10);
}

TEST(Choose, BeyondTheLargestSizeThereIsNoPlan) {
  Plan plan = chosen({{1024, 4096}, {{kNccl, {100, 100}}, {kOne, {5, 5}}}});
  EXPECT_EQ(plan.max_bytes(), 4096u);
  const auto served = [&](size_t bytes) {
    plan.layout = {2, 4096, 0};
    return decide({bytes / 4, nccl::kFloat32, nccl::kSum}, plan);
  };
  EXPECT_TRUE(served(4096).served);
  EXPECT_FALSE(served(4100).served);
  EXPECT_EQ(served(4100).pass, Pass::kSize);
}

/// Nor for a method that NCCL has caught up with, while another one is ahead.
TEST(Choose, LoyaltyEndsWhereNcclIsAsFast) {
  const Plan plan = chosen({{1000, 2000}, {{kNccl, {100, 100}}, {kOne, {90, 96}}, {kTwo, {91, 94}}}});
  ASSERT_EQ(plan.count, 2u);
  EXPECT_EQ(plan.ranges[0].method, kOne);
  EXPECT_EQ(plan.ranges[1].method, kTwo);
}

/// What a peer sends as its times may be anything.
TEST(Times, OnlyPositiveNumbersAreTimes) {
  std::array<TimesRecord, 2> table;
  for (TimesRecord& record : table) record.times.fill({1.5f, 1, 2});
  EXPECT_EQ(slowest(table, 1).us, 1.5);
  table[0].times[1] = {7, 6, 8};
  EXPECT_EQ(slowest(table, 1).us, 7);
  EXPECT_EQ(slowest(table, 1).fast, 6);
  EXPECT_EQ(slowest(table, 1).slow, 8);
  for (const float bad :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    table[1].times[1] = {bad, bad, bad};
    EXPECT_EQ(slowest(table, 1).us, kLongestUs) << bad;
    EXPECT_EQ(slowest(table, 1).fast, kLongestUs) << bad;
    EXPECT_EQ(slowest(table, 1).slow, kLongestUs) << bad;
    EXPECT_EQ(slowest(table, 0).us, 1.5);
  }
}

/// However little NCCL is ahead: a measured size is not lost to rounding.
TEST(Choose, AMeasuredSizeIsItsWinners) {
  expect_ranges({{1000, 2000}, {{kNccl, {1e20, 100}}, {kOne, {1, 96}}}}, {{1999, kOne}, {2000, kNccl}});
}

/// As many changes as there can be: the largest size is never lost.
TEST(Choose, RangesFitIntoThePlan) {
  for (size_t sizes = 1; sizes <= Plan{}.ranges.size(); ++sizes) {
    Timings timings{{}, {{kNccl, {}}, {kOne, {}}, {kTwo, {}}}};
    for (size_t i = 0; i < sizes; ++i) {
      timings.sizes.push_back(1024u << i);
      for (size_t r = 0; r < 3; ++r) timings.rows[r].times.push_back(i % 3 == r ? 10 : 100);
    }
    const Plan plan = chosen(timings);
    EXPECT_EQ(plan.count, sizes);
    EXPECT_EQ(plan.max_bytes(), timings.sizes.back());
    for (uint32_t r = 1; r < plan.count; ++r) {
      EXPECT_GT(plan.ranges[r].max_bytes, plan.ranges[r - 1].max_bytes);
      EXPECT_NE(plan.ranges[r].method, plan.ranges[r - 1].method);
    }
  }
}

TEST(Leaders, AreThoseThatWinAndThenTheNextBest) {
  // The pull wins once and loses much on the whole; two-shot never wins and is always near.
  const Timings timings{
      {1, 2, 3}, {{kNccl, {1, 1, 1}}, {kTwo, {11, 11, 11}}, {kPull, {100, 100, 9}}, {kOne, {10, 10, 12}}}};
  EXPECT_EQ(leaders(timings, 3), (std::vector<Method>{kOne, kPull, kTwo}));
  EXPECT_EQ(leaders(timings, 2), (std::vector<Method>{kOne, kPull}));
  EXPECT_EQ(leaders(timings, 1), (std::vector<Method>{kOne}));
  EXPECT_EQ(leaders(timings, 9).size(), 3u);
  EXPECT_TRUE(leaders(timings, 0).empty());
  EXPECT_TRUE(leaders({{1}, {{kNccl, {1}}}}, 3).empty());
}

TEST(Describe, SaysTheTimesOfTheLargestSizeOfEachRange) {
  const Timings timings{{1000, 2000, 3000},
                        {{kNccl, {100, 100, 100}}, {kOne, {75, 115, 195}}, {kTwo, {300, 115, 75.26}}}};
  EXPECT_EQ(describe(chosen(timings), timings),
            "one-shot push up to 1500 bytes (75.0 us at 1000, NCCL 100.0), NCCL up to 2503 bytes, two-shot "
            "push up to 3000 bytes (75.3 us at 3000, NCCL 100.0)");
}

}  // namespace
}  // namespace onehop::test
