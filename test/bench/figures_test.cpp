// Medians, percentiles, and the verdict at its limits.
#include "tools/onehop/bench/figures.hpp"

#include <gtest/gtest.h>

namespace onehop::bench {
namespace {

TEST(Figures, TheMedianIsInTheMiddle) {
  EXPECT_DOUBLE_EQ(median({3}), 3);
  EXPECT_DOUBLE_EQ(median({9, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({9, 1, 2, 4}), 3);
}

TEST(Figures, APercentileIsAMeasuredValue) {
  std::vector<double> values;
  for (int i = 200; i >= 1; --i) values.push_back(i);
  EXPECT_DOUBLE_EQ(percentile(values, 0.99), 198);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 200);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({5, 7, 6}, 0.99), 7);
}

TEST(Figures, OverRanksSampleBySample) {
  const std::vector<std::vector<double>> of_ranks{{5, 2, 9}, {4, 3}, {6, 1, 1}};
  EXPECT_EQ(shortest(of_ranks), (std::vector<double>{4, 1}));
  EXPECT_EQ(longest(of_ranks), (std::vector<double>{6, 3}));
  EXPECT_TRUE(shortest({}).empty());
}

TEST(Figures, TwoPercentAreAllowedAndNoMore) {
  EXPECT_EQ(judge(10.19, 10), Verdict::kAsFast);
  EXPECT_EQ(judge(10.21, 10), Verdict::kSlower);
  EXPECT_EQ(judge(9.51, 10), Verdict::kAsFast);
  EXPECT_EQ(judge(9.49, 10), Verdict::kFaster);
}

}  // namespace
}  // namespace onehop::bench
