// How much an operation of each method can carry, and what the methods are told of a type.
#include <gtest/gtest.h>

#include "kernels/method.hpp"
#include "kernels/protocol/dispatch.hpp"
#include "kernels/protocol/two_shot.hpp"
#include "test/protocol/partition.hpp"

namespace onehop::test {
namespace {

TEST(LargestOperation, IsWhatARegionHolds) {
  const Layout layout{4, 64, 64};
  const Islands islands = islands_of("AABB");
  const auto packs = [&](Method method, WordKind kind, uint32_t wide = 1) {
    return largest_operation(method, layout, kind, islands, wide);
  };
  EXPECT_EQ(packs(Method::kOneShot, WordKind::kSentinel), 64u);
  EXPECT_EQ(packs(Method::kOneShotStaged, WordKind::kFlag), 32u);
  EXPECT_EQ(packs(Method::kTwoShot, WordKind::kSentinel), 128u) << "half of a region is for results";
  EXPECT_EQ(packs(Method::kTwoShotStaged, WordKind::kFlag), 64u);
  EXPECT_EQ(packs(Method::kOneShotPull, WordKind::kSentinel), 64u);
  EXPECT_EQ(packs(Method::kTwoShotPull, WordKind::kSentinel), 64u) << "results have a part of their own";
  EXPECT_EQ(packs(Method::kIslands, WordKind::kSentinel), 42u);
  EXPECT_EQ(packs(Method::kIslands, WordKind::kSentinel, 4), 20u);
}

TEST(LargestOperation, IsNothingWhereAMethodCannotServe) {
  const Layout many{9, 64, 64}, no_outbox{4, 64, 0};
  const Islands none, one = islands_of("AAAA"), two = islands_of("AAAAABBBB");
  for (uint32_t m = 0; m < kMethods; ++m) {
    const auto method = static_cast<Method>(m);
    EXPECT_EQ(largest_operation(method, many, WordKind::kSentinel, two, 1) > 0, method == Method::kIslands);
    EXPECT_EQ(largest_operation(method, no_outbox, WordKind::kSentinel, none, 1) > 0,
              !is_pull(method) && method != Method::kIslands);
  }
  EXPECT_EQ(largest_operation(Method::kIslands, no_outbox, WordKind::kSentinel, one, 1), 0u);
}

TEST(Slices, EachPackHasOneOwner) {
  for (uint32_t ranks = 2; ranks <= kMaxHopRanks; ++ranks)
    for (uint32_t packs = 1; packs < 40; ++packs) {
      const Slices slices(packs, ranks);
      uint32_t seen = 0;
      for (uint32_t j = 0; j < slices.share; ++j) {
        uint32_t owners = 0;
        for (uint32_t r = 0; r < ranks; ++r) {
          if (!slices.has(r, j)) continue;
          ASSERT_EQ(r, owners) << "owners are the first ranks";
          ++owners;
          ++seen;
        }
        ASSERT_EQ(slices.owners(j), owners);
      }
      ASSERT_EQ(seen, packs);
    }
}

TEST(Elements, TablesAgreeWithTheTypes) {
  for (uint32_t e = 0; e < kElements; ++e) {
    const auto element = static_cast<Element>(e);
    dispatch(element, Reduction::kMax, [&]<class Type, class Operator>() {
      EXPECT_EQ(element_size(element), Type::kBytes);
      EXPECT_EQ(wide_packs(element), (PackReduction<Type, Operator>::kWidePacks));
      EXPECT_LE(wide_packs(element), kMaxWidePacks);
      EXPECT_EQ(word_kind(element), Type::Words::kKind);
    });
  }
}

}  // namespace
}  // namespace onehop::test
