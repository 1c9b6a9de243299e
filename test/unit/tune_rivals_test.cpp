// What `onehop tune` tries of NCCL's settings, and what it suggests.
#include "tools/onehop/tune_rivals.hpp"

#include <gtest/gtest.h>

namespace onehop::tune {
namespace {

constexpr uint64_t kMiB = 1 << 20;

RivalMeasured measured(int round, const char* settings, uint64_t bytes, double us, double nccl_us) {
  return {{us, nccl_us, {}}, {round, settings, bytes}};
}

// Protects: that only calls are looked at which NCCL carries under the plan.
TEST(Rivals, AreTriedWhereTheCallsAreNccls) {
  FilePlan plan;
  plan.ranges = {{999, std::nullopt, {0, 0}, 500, 0, 1},
                 {4000, Method::kOneShot, {0, 0}, 4000, 1, 2},
                 {8000, std::nullopt, {0, 0}, 8000, 0, 1}};
  const std::vector<uint64_t> tuned = {500, 1000, 4000, 8000};
  EXPECT_EQ(sizes_left_to_nccl(plan, tuned, false), (std::vector<uint64_t>{500, 8000, kMiB, 4 * kMiB}));
  EXPECT_EQ(sizes_left_to_nccl(plan, tuned, true), (std::vector<uint64_t>{500, 8000}));
  EXPECT_EQ(sizes_left_to_nccl(plan, {4000, 2 * kMiB}, false), (std::vector<uint64_t>{2 * kMiB, 4 * kMiB}));
}

TEST(Rivals, AreMeasuredAgainWhereTheyWereFaster) {
  const std::vector<RivalStep> first = first_rivals({"A=1", "B=2"}, {kMiB, 4 * kMiB});
  EXPECT_EQ(first.size(), 4u);
  RivalMeasured dropped = measured(1, "B=2", kMiB, 0, 0);
  dropped.dropped = "hangs";
  const std::vector<RivalStep> second = second_rivals(
      first, {measured(1, "A=1", kMiB, 96, 100), measured(1, "A=1", 4 * kMiB, 95, 100), dropped});
  EXPECT_EQ(second, (std::vector<RivalStep>{{2, "A=1", 4 * kMiB}}));
}

TEST(Rivals, AreSuggestedIfTheSecondTimeAgrees) {
  const std::vector<RivalStep> second = {
      {2, "A=1", kMiB}, {2, "A=1", 4 * kMiB}, {2, "B=2", kMiB}, {2, "C=3", kMiB}};
  std::vector<RivalMeasured> results = {
      measured(1, "A=1", kMiB, 1, 100),       measured(1, "A=1", 4 * kMiB, 1, 100),
      measured(1, "B=2", kMiB, 1, 100),       measured(1, "C=3", kMiB, 1, 100),
      measured(2, "A=1", kMiB, 40.12, 48.71), measured(2, "A=1", 4 * kMiB, 90, 145),
      measured(2, "B=2", kMiB, 96, 100),      measured(2, "C=3", kMiB, 5, 10)};
  const std::string text = suggestions(second, results);
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "  A=1: 1 MiB 48.7 -> 40.1; 4 MiB 145 -> 90.0\n"
            "  C=3: 1 MiB 10.0 -> 5.00\n");
  results.resize(4);
  EXPECT_EQ(suggestions(second, results),
            "For calls that onehop leaves to NCCL no setting of NCCL was clearly faster.\n");
  EXPECT_EQ(suggestions({}, results),
            "For calls that onehop leaves to NCCL no setting of NCCL was clearly faster.\n");
}

}  // namespace
}  // namespace onehop::tune
