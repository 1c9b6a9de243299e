// The shape of a launch, for every method and every size that staging can hold.
#include "kernels/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace onehop::test {
namespace {

constexpr Method kAll[] = {Method::kOneShot,       Method::kTwoShot,     Method::kOneShotStaged,
                           Method::kTwoShotStaged, Method::kOneShotPull, Method::kTwoShotPull,
                           Method::kIslands};
static_assert(std::size(kAll) == kMethods);

struct Case {
  Method method;
  uint32_t ranks;
  Islands islands;
  bool in_host = false;

  /// Packs of which each is one worker's, in an operation of `packs`.
  uint32_t items(uint32_t packs) const {
    switch (method) {
      case Method::kOneShot:
      case Method::kOneShotStaged:
      case Method::kOneShotPull:
        return packs;
      case Method::kTwoShot:
      case Method::kTwoShotStaged:
      case Method::kTwoShotPull:
        return (packs + ranks - 1) / ranks;
      case Method::kIslands:
        return (packs + islands.smallest - 1) / islands.smallest;
    }
    return 0;
  }
  /// Pulls from host memory run with few threads, on purpose.
  bool is_held_back() const { return is_pull(method) && in_host && ranks > 2; }
  uint32_t most_blocks() const {
    if (is_held_back()) return 8;
    return method == Method::kOneShotStaged || method == Method::kTwoShotStaged ? 4 : kMaxBlocks;
  }
  Geometry geometry(uint32_t packs) const {
    CommView comm;
    comm.ranks = ranks;
    comm.in_host = in_host;
    comm.islands = islands;
    return geometry_for(method, packs, comm);
  }
};

// Protects: a bound of nothing taken for none, which would launch more blocks than fit on the GPU at once.
TEST(HeldTo, FewerBlocksGetMoreWorkersAndNoneIsOne) {
  EXPECT_EQ(held_to({8, 128}, 8), (Geometry{8, 128}));
  EXPECT_EQ(held_to({8, 128}, 4), (Geometry{4, 256}));
  EXPECT_EQ(held_to({3, 64}, 2), (Geometry{2, 96}));
  EXPECT_EQ(held_to({32, 256}, 0), (Geometry{1, kMaxWorkers}));
  for (uint32_t bound = 0; bound <= kMaxBlocks; ++bound)
    for (uint32_t blocks = 1; blocks <= kMaxBlocks; ++blocks)
      for (uint32_t workers = 32; workers <= kMaxWorkers; workers += 32) {
        const Geometry held = held_to({blocks, workers}, bound);
        ASSERT_TRUE(is_geometry(held.blocks, held.workers)) << blocks << " x " << workers << " in " << bound;
        ASSERT_LE(held.blocks, std::max(bound, 1u));
        ASSERT_GE(held.blocks * held.workers, std::min(blocks * workers, held.blocks * kMaxWorkers));
      }
}

/// All ranks of a GPU, of two communicators at once; and nobody is without a block.
TEST(BlocksBeside, AllFitOnTheGpu) {
  EXPECT_EQ(blocks_beside(132, 1), kMaxBlocks);
  EXPECT_EQ(blocks_beside(58, 1), 29u);
  EXPECT_EQ(blocks_beside(132, 4), 16u);
  for (uint32_t multiprocessors = 1; multiprocessors <= 200; ++multiprocessors)
    for (uint32_t sharing = 1; sharing <= kMaxRanks; ++sharing) {
      const uint32_t blocks = blocks_beside(multiprocessors, sharing);
      EXPECT_GE(blocks, 1u);
      EXPECT_LE(blocks, kMaxBlocks);
      if (blocks > 1) {
        EXPECT_LE(2 * sharing * blocks, multiprocessors);
      }
    }
}

/// Fewer blocks have more workers, up to the most: those in all do not become fewer before that.
TEST(Geometry, IsHeldToFewBlocks) {
  CommView comm;
  comm.ranks = 8;
  for (const uint32_t packs : {1u, 64u, 1024u, 2688u, 4096u, 100'000u}) {
    comm.max_blocks = UINT32_MAX;
    const Geometry free = geometry_for(Method::kOneShot, packs, comm);
    for (const uint32_t most : {1u, 2u, 8u, 31u, 32u}) {
      comm.max_blocks = most;
      const Geometry held = geometry_for(Method::kOneShot, packs, comm);
      EXPECT_LE(held.blocks, most);
      EXPECT_EQ(held.workers % 32, 0u);
      EXPECT_LE(held.workers, kMaxWorkers);
      EXPECT_GE(held.blocks * held.workers, std::min(free.blocks * free.workers, most * kMaxWorkers));
    }
  }
}

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << name_of(c.method) << ", " << c.ranks << " ranks, " << int{c.islands.count} << " islands"
             << (c.in_host ? ", in host memory" : "");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Method method : kAll)
    for (const uint32_t ranks : {2u, 3u, 4u, 7u, 8u})
      for (const bool in_host : {false, true})
        all.push_back({method, ranks, equal_islands(ranks, 2), in_host});
  for (const uint32_t ranks : {9u, 12u, 16u})
    all.push_back({Method::kIslands, ranks, equal_islands(ranks, 2)});
  for (const uint32_t ranks : {3u, 8u, 16u})
    all.push_back({Method::kIslands, ranks, equal_islands(ranks, ranks)});
  return all;
}

TEST(Geometry, StaysWithinItsLimitsAndReachesEveryPack) {
  for (const Case& c : cases())
    for (uint32_t packs = 0; packs <= 100000; packs += packs < 20000 ? 1 : 997) {
      const Geometry g = c.geometry(packs);
      ASSERT_GE(g.blocks, 1u) << c << ", " << packs;
      ASSERT_LE(g.blocks, c.most_blocks()) << c << ", " << packs;
      ASSERT_GE(g.workers, 32u) << c << ", " << packs;
      ASSERT_LE(g.workers, kMaxWorkers) << c << ", " << packs;
      ASSERT_EQ(g.workers % 32, 0u) << c << ", " << packs;
      // One pack for each worker up to the largest grid, and no block without work.
      const uint32_t items = c.items(packs);
      if (!c.is_held_back()) {
        ASSERT_GE(g.blocks * g.workers, std::min(items, c.most_blocks() * kMaxWorkers)) << c << ", " << packs;
      }
      ASSERT_TRUE(g.blocks == 1 || (g.blocks - 1) * g.workers < items) << c << ", " << packs;
    }
}

TEST(Geometry, NeverShrinksWithTheSize) {
  for (const Case& c : cases())
    for (uint32_t packs = 1; packs <= 20000; ++packs) {
      const Geometry less = c.geometry(packs - 1), more = c.geometry(packs);
      ASSERT_LE(less.blocks * less.workers, more.blocks * more.workers) << c << ", " << packs;
    }
}

TEST(Geometry, TakesTheLargestNumberOfPacks) {
  for (const Case& c : cases()) {
    const Geometry g = c.geometry(UINT32_MAX / 16);
    EXPECT_EQ(g.blocks, c.most_blocks()) << c;
    if (!c.is_held_back()) {
      EXPECT_EQ(g.workers, kMaxWorkers) << c;
    }
  }
}

// Protects: a plan's blocks are the most there may be. A block without work only costs.
TEST(Geometry, OfAPlanIsFilledAndNoLarger) {
  for (const Case& c : cases()) {
    CommView comm;
    comm.ranks = c.ranks;
    comm.in_host = c.in_host;
    comm.islands = c.islands;
    Operation operation;
    operation.method = c.method;
    for (const uint32_t blocks : {1u, 3u, 32u})
      for (const uint32_t workers : {32u, 160u, 256u})
        for (uint32_t packs = 0; packs < 10000; packs += 1 + packs / 7) {
          operation.most_blocks = static_cast<uint8_t>(blocks);
          operation.workers = static_cast<uint16_t>(workers);
          const Geometry g = geometry_of(operation, packs, comm);
          const uint32_t items = c.items(packs);
          ASSERT_TRUE(is_geometry(g.blocks, g.workers)) << c << ", " << packs;
          ASSERT_LE(g.blocks, blocks) << c << ", " << packs;
          ASSERT_LE(g.workers, workers) << c << ", " << packs;
          ASSERT_TRUE(g.blocks == 1 || (g.blocks - 1) * g.workers < items) << c << ", " << packs;
          ASSERT_GE(g.blocks * g.workers, std::min(items, blocks * workers)) << c << ", " << packs;
        }
    operation.most_blocks = 0;
    EXPECT_EQ(geometry_of(operation, 777, comm), geometry_for(c.method, 777, comm)) << c;
  }
}

}  // namespace
}  // namespace onehop::test
