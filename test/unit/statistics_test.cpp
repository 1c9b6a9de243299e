// The counters that prove to a user what was taken.
#include "plugin/statistics.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace onehop::test {
namespace {

TEST(Statistics, SizesShareABucketByPowersOfTwo) {
  EXPECT_EQ(Statistics::bucket_of(0), 0u);
  EXPECT_EQ(Statistics::bucket_of(1), 0u);
  EXPECT_EQ(Statistics::bucket_of(2), 1u);
  EXPECT_EQ(Statistics::bucket_of(3), 1u);
  for (size_t bit = 2; bit < 64; ++bit) {
    const uint64_t bytes = uint64_t{1} << bit;
    const size_t last = Statistics::kBuckets - 1;
    EXPECT_EQ(Statistics::bucket_of(bytes - 1), std::min(bit - 1, last));
    EXPECT_EQ(Statistics::bucket_of(bytes), std::min(bit, last));
    EXPECT_EQ(Statistics::bucket_of(bytes + 1), std::min(bit, last));
  }
  EXPECT_EQ(Statistics::bucket_of(~uint64_t{0}), Statistics::kBuckets - 1);
}

TEST(Statistics, EveryCallIsCountedOnceInItsPlace) {
  Statistics statistics;
  statistics.count_taken(64, Method::kOneShot);
  statistics.count_taken(127, Method::kTwoShot);
  for (size_t r = 0; r < kPassReasons; ++r)
    for (size_t i = 0; i <= r; ++i) statistics.count_passed(1024, static_cast<Pass>(r));
  EXPECT_EQ(statistics.taken(), 2u);
  EXPECT_EQ(statistics.taken(6), 2u);
  EXPECT_EQ(statistics.passed(), kPassReasons * (kPassReasons + 1) / 2);
  EXPECT_EQ(statistics.passed(10), statistics.passed());
  for (size_t r = 0; r < kPassReasons; ++r)
    EXPECT_EQ(statistics.passed_because(static_cast<Pass>(r)), r + 1) << kPassTexts[r];
}

TEST(Statistics, SumsLoseNothing) {
  Statistics one, two, sum;
  one.count_taken(8, Method::kOneShot);
  one.count_passed(8, Pass::kSize);
  two.count_taken(1 << 20, Method::kIslands);
  two.count_passed(0, Pass::kEmpty);
  sum.add(one);
  sum.add(two);
  sum.add(two);
  EXPECT_EQ(sum.taken(), 3u);
  EXPECT_EQ(sum.taken(3), 1u);
  EXPECT_EQ(sum.taken(20), 2u);
  EXPECT_EQ(sum.passed(), 3u);
  EXPECT_EQ(sum.passed_because(Pass::kSize), 1u);
  EXPECT_EQ(sum.passed_because(Pass::kEmpty), 2u);
}

TEST(Statistics, ThreadsLoseNoCount) {
  constexpr uint64_t kThreads = 4, kCalls = 20000;
  Statistics statistics;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kCalls; ++i) {
        statistics.count_taken(4, Method::kOneShot);
        statistics.count_passed(4, Pass::kType);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics.taken(), kThreads * kCalls);
  EXPECT_EQ(statistics.passed_because(Pass::kType), kThreads * kCalls);
}

TEST(Pass, EveryReasonHasAText) {
  for (const char* text : kPassTexts) {
    ASSERT_NE(text, nullptr);
    EXPECT_STRNE(text, "");
  }
  EXPECT_STREQ(kPassTexts[static_cast<size_t>(Pass::kNotInspected)], "not inspected") << "the last one";
  EXPECT_EQ(static_cast<size_t>(Pass::kNotInspected) + 1, kPassReasons);
}

}  // namespace
}  // namespace onehop::test
