// A short day: across the wrap of the epoch, and epochs that come again. The long one is
// `build/test/protocol/endurance`.
#include "test/protocol/endurance.hpp"

#include <gtest/gtest.h>

namespace onehop::test {
namespace {

/// Crosses the wrap half-way.
EnduranceOptions across_the_wrap(uint64_t operations, uint32_t ranks) {
  return {.operations = operations,
          .ranks = ranks,
          .islands = equal_islands(ranks, 2),
          .first_epoch = static_cast<uint32_t>(-static_cast<int64_t>(operations / 2)),
          .seed = ranks};
}

void must_endure(const EnduranceOptions& options) {
  const Endured endured = endure(options);
  EXPECT_EQ(endured.problem, "");
  EXPECT_EQ(endured.operations, options.operations);
  EXPECT_GE(endured.wraps, 1u);
  EXPECT_GE(endured.recurrences, options.operations / Schedule::kCycle);
  EXPECT_GT(endured.long_ones, options.operations / 64);
}

TEST(Endurance, OfTwoRanksAcrossTheWrap) {
  must_endure(across_the_wrap(1'500'000, 2));
}

TEST(Endurance, OfThreeAndEightRanksAcrossTheWrap) {
  must_endure(across_the_wrap(200'000, 3));
  must_endure(across_the_wrap(50'000, 8));
}

// Protects: this test. Flags that are not renewed are believed when their epoch comes again.
TEST(Endurance, SeesFlagsThatAreNotRenewed) {
  const Endured endured = endure<NoRenewal>(across_the_wrap(200'000, 2));
  EXPECT_EQ(endured.wrong, 1u) << endured.problem;
}

// Protects: this test, beside recurrences. A flag of few bits comes again while it is still young.
TEST(Endurance, SeesFlagsOfFewBits) {
  EnduranceOptions options = across_the_wrap(200'000, 2);
  options.recurs = false;
  const Endured endured = endure<FewFlagBits>(options);
  EXPECT_EQ(endured.wrong, 1u) << endured.problem;
}

}  // namespace
}  // namespace onehop::test
