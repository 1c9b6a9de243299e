// What `onehop tune` measures, and what it makes of it.
#include "tools/onehop/tune_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace onehop::tune {
namespace {

Choices two_ranks(std::vector<uint64_t> sizes) {
  return {std::move(sizes), {Method::kOneShot, Method::kOneShotPull}, {0, 1}, 2};
}

Measured measured(int round, uint64_t bytes, Method method, Geometry most, double us, double nccl_us) {
  return {{us, nccl_us, {}}, {round, bytes, method, most}};
}

TEST(FirstRound, HasEveryMethodAsItIsAndInGeometriesThatAreFilled) {
  for (const uint32_t most_blocks : {1u, 8u, 32u}) {
    Choices choices = two_ranks({16, 1024, 65536, 524288});
    choices.most_blocks = most_blocks;
    const std::vector<Step> steps = first_round(choices);
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(std::count(steps.begin(), steps.end(), steps[i]), 1) << describe(steps[i]);
      const Geometry most = steps[i].most;
      if (most.blocks == 0) continue;
      EXPECT_TRUE(is_geometry(most.blocks, most.workers)) << describe(steps[i]);
      EXPECT_LE(most.blocks, most_blocks);
      EXPECT_LT((most.blocks - 1) * most.workers, steps[i].bytes / sizeof(Pack))
          << "idle: " << describe(steps[i]);
    }
    for (const uint64_t bytes : choices.sizes)
      for (const Method method : choices.methods)
        EXPECT_EQ(std::count(steps.begin(), steps.end(), Step{1, bytes, method, {0, 0}}), 1);
  }
}

TEST(SecondRound, HasTheBestOfEachSizeAndWhatTheyAreMeasuredBy) {
  const Choices choices = two_ranks({1024});
  std::vector<Measured> results;
  for (uint32_t i = 0; i < 6; ++i)
    results.push_back(measured(1, 1024, Method::kOneShot, {1, 32 * (i + 1)}, 6.0 - i, 10));
  results.push_back({{0, 0, "hangs"}, {1, 1024, Method::kOneShotPull, {0, 0}}});
  const std::vector<Step> steps = second_round(choices, results);
  const std::vector<Step> expected = {{2, 1024, Method::kOneShot, {1, 192}},
                                      {2, 1024, Method::kOneShot, {0, 0}},
                                      {2, 1024, Method::kOneShot, {1, 160}},
                                      {2, 1024, Method::kOneShot, {1, 128}}};
  EXPECT_EQ(steps, expected);
}

// Protects: never slower than NCCL; what lies between two sizes is NCCL's if one of them is.
TEST(BestPlan, LeavesToNcclWhatIsNotClearlyFaster) {
  const Choices choices = two_ranks({1000, 2000, 3000, 4000});
  const std::vector<Measured> results = {measured(2, 1000, Method::kOneShot, {0, 0}, 9.6, 10),
                                         measured(2, 2000, Method::kOneShot, {0, 0}, 5, 10),
                                         measured(2, 3000, Method::kOneShot, {0, 0}, 12, 10),
                                         {{0, 0, "wrong"}, {2, 4000, Method::kOneShot, {0, 0}}}};
  const FilePlan plan = best_plan(choices, results);
  ASSERT_EQ(plan.ranges.size(), 3u);
  EXPECT_EQ(plan.ranges[0].method, std::nullopt);
  EXPECT_EQ(plan.ranges[0].up_to, 1999u);
  EXPECT_EQ(plan.ranges[1].method, Method::kOneShot);
  EXPECT_EQ(plan.ranges[1].up_to, 2000u);
  EXPECT_EQ(plan.ranges[1].us, 5);
  EXPECT_EQ(plan.ranges[2].method, std::nullopt);
  EXPECT_EQ(plan.ranges[2].up_to, 4000u);
}

TEST(BestPlan, KeepsTheUsualGeometryUnlessAnotherIsWorthIt) {
  const Choices choices = two_ranks({1000});
  const auto winner = [&](double other) {
    return best_plan(choices, {measured(2, 1000, Method::kOneShot, {0, 0}, 5, 10),
                               measured(2, 1000, Method::kOneShot, {4, 64}, other, 10)})
        .ranges[0];
  };
  EXPECT_EQ(winner(4.9).most, (Geometry{0, 0}));
  EXPECT_EQ(winner(4.9).us, 5);
  EXPECT_EQ(winner(4.5).most, (Geometry{4, 64}));
}

// Protects: times of both sides drift together; what was measured beside a slow NCCL is not the better for
// it.
TEST(BestPlan, ComparesWithTheNcclThatWasMeasuredBeside) {
  const Choices choices = two_ranks({1000});
  const FilePlan plan = best_plan(choices, {measured(2, 1000, Method::kOneShot, {0, 0}, 8, 16),
                                            measured(2, 1000, Method::kOneShotPull, {0, 0}, 7, 10)});
  EXPECT_EQ(plan.ranges[0].method, Method::kOneShot);
}

// Protects: a plan that the plugin would refuse.
TEST(BestPlan, IsAPlanWhateverWasMeasured) {
  const Choices choices = two_ranks({2, 3, 4, 512, 1024, 1025, 4096, 65536, 8 << 20});
  for (uint32_t pattern = 0; pattern < 1u << choices.sizes.size(); ++pattern) {
    std::vector<Measured> results;
    for (size_t i = 0; i < choices.sizes.size(); ++i)
      results.push_back(measured(2, choices.sizes[i], i % 3 == 0 ? Method::kOneShotPull : Method::kOneShot,
                                 {0, 0}, (pattern >> i & 1) != 0 ? 5 : 20, 10));
    uint64_t below = 0;
    const FilePlan plan = best_plan(choices, results);
    for (const FilePlan::Range& range : plan.ranges) {
      ASSERT_GT(range.up_to, below);
      ASSERT_GT(range.measured_at, below) << "pattern " << pattern;
      ASSERT_LE(range.measured_at, range.up_to);
      below = range.up_to;
    }
    ASSERT_EQ(below, choices.sizes.back());
    for (size_t i = 0; i < choices.sizes.size(); ++i) {
      const auto at = std::find_if(plan.ranges.begin(), plan.ranges.end(),
                                   [&](const auto& range) { return choices.sizes[i] <= range.up_to; });
      ASSERT_EQ(at->method.has_value(), (pattern >> i & 1) != 0) << choices.sizes[i];
    }
  }
}

}  // namespace
}  // namespace onehop::tune
