// The shape of a launch, for every size that staging can hold.
#include "kernels/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace onehop::test {
namespace {

TEST(Geometry, StaysWithinItsLimitsAndReachesEveryPack) {
  for (uint32_t packs = 0; packs <= 100000; ++packs) {
    const Geometry g = geometry_for(packs);
    ASSERT_GE(g.blocks, 1u) << packs;
    ASSERT_LE(g.blocks, kMaxBlocks) << packs;
    ASSERT_GE(g.workers, 32u) << packs;
    ASSERT_LE(g.workers, kMaxWorkers) << packs;
    ASSERT_EQ(g.workers % 32, 0u) << packs;
    // One pack for each worker up to the largest grid, and no block without work.
    ASSERT_GE(g.blocks * g.workers, std::min(packs, kMaxBlocks * kMaxWorkers)) << packs;
    ASSERT_TRUE(g.blocks == 1 || (g.blocks - 1) * g.workers < packs) << packs;
  }
}

TEST(Geometry, NeverShrinksWithTheSize) {
  for (uint32_t packs = 1; packs <= 100000; ++packs) {
    const Geometry less = geometry_for(packs - 1), more = geometry_for(packs);
    ASSERT_LE(less.blocks * less.workers, more.blocks * more.workers) << packs;
  }
}

TEST(Geometry, TakesTheLargestNumberOfPacks) {
  const Geometry g = geometry_for(UINT32_MAX / 16);
  EXPECT_EQ(g.blocks, kMaxBlocks);
  EXPECT_EQ(g.workers, kMaxWorkers);
}

}  // namespace
}  // namespace onehop::test
