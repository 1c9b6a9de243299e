// Partitions of ranks into islands, and who must reach whose memory.
#include "kernels/islands.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace onehop::test {
namespace {

using Partition = std::vector<uint8_t>;  ///< island of each rank

Islands islands_of(const Partition& partition) {
  return make_islands(partition.data(), static_cast<uint32_t>(partition.size()));
}

std::string text_of(const Partition& partition) {
  std::string text;
  for (const uint8_t island : partition) text += std::to_string(island) + " ";
  return text;
}

/// Appends every partition of `ranks` ranks that begins with `partition`: a rank is in an island of a rank
/// before it, or in the next new one.
void append_all(Partition& partition, uint8_t next, size_t ranks, std::vector<Partition>& all) {
  if (partition.size() == ranks) return all.push_back(partition);
  for (uint8_t island = 0; island <= next; ++island) {
    partition.push_back(island);
    append_all(partition, std::max<uint8_t>(next, static_cast<uint8_t>(island + 1)), ranks, all);
    partition.pop_back();
  }
}

/// Every partition of up to 6 ranks, and some of up to 16.
const std::vector<Partition>& partitions() {
  static const std::vector<Partition> all = [] {
    std::vector<Partition> made;
    for (size_t ranks = 1; ranks <= 6; ++ranks) {
      Partition partition;
      append_all(partition, 0, ranks, made);
    }
    EXPECT_EQ(made.size(), 1u + 2 + 5 + 15 + 52 + 203) << "Bell's numbers";
    made.push_back({1, 0});  // numbered in another order
    made.push_back({2, 0, 1, 0, 2});
    made.push_back({0, 0, 0, 0, 0, 0, 0, 1});
    made.push_back({0, 0, 0, 0, 0, 1, 1, 1, 1});
    made.push_back({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
    made.push_back({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
    made.push_back({0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    made.push_back({0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3});
    made.push_back({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    return made;
  }();
  return all;
}

/// Packs of an operation: all small numbers, and some that no island's size divides.
std::vector<uint32_t> pack_counts() {
  std::vector<uint32_t> counts;
  for (uint32_t packs = 1; packs <= 64; ++packs) counts.push_back(packs);
  counts.insert(counts.end(), {840, 841, 1023});
  return counts;
}

TEST(Islands, HaveTheirRanksInOrder) {
  for (const Partition& partition : partitions()) {
    const Islands islands = islands_of(partition);
    uint32_t found = 0, smallest = UINT32_MAX;
    for (uint32_t i = 0; i < islands.count; ++i) {
      ASSERT_GT(islands.size(i), 0u) << text_of(partition);
      smallest = std::min(smallest, islands.size(i));
      for (uint32_t k = 0; k < islands.size(i); ++k, ++found) {
        const uint32_t rank = islands.member(i, k);
        ASSERT_LT(rank, partition.size()) << text_of(partition);
        EXPECT_EQ(partition[rank], i) << text_of(partition);
        EXPECT_EQ(islands.island[rank], i) << text_of(partition);
        EXPECT_EQ(islands.place(rank), k) << text_of(partition);
        if (k > 0) {
          EXPECT_GT(rank, islands.member(i, k - 1)) << text_of(partition);
        }
      }
    }
    EXPECT_EQ(found, partition.size()) << text_of(partition);
    EXPECT_EQ(islands.smallest, smallest) << text_of(partition);
  }
}

/// A sum passes from run to run: each run is of one island, the next one is of another, and together they are
/// all ranks in their order.
TEST(Islands, RunsAreTheLongestSequencesOfOneIsland) {
  for (const Partition& partition : partitions()) {
    const Islands islands = islands_of(partition);
    ASSERT_GE(islands.runs, islands.count) << text_of(partition);
    EXPECT_EQ(islands.run[0], 0u);
    EXPECT_EQ(islands.run[islands.runs], partition.size()) << text_of(partition);
    for (uint32_t t = 0; t < islands.runs; ++t) {
      ASSERT_LT(islands.run[t], islands.run[t + 1]) << text_of(partition);
      for (uint32_t rank = islands.run[t]; rank < islands.run[t + 1]; ++rank)
        EXPECT_EQ(partition[rank], partition[islands.run[t]]) << text_of(partition);
      if (t > 0) {
        EXPECT_NE(partition[islands.run[t]], partition[islands.run[t] - 1]) << text_of(partition);
      }
    }
  }
}

TEST(Islands, OfEqualSizeAreConsecutiveRanks) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (uint32_t count = 1; count <= ranks; ++count) {
      const Islands islands = equal_islands(ranks, count);
      ASSERT_EQ(islands.count, count) << ranks;
      EXPECT_EQ(islands.runs, count) << ranks;
      for (uint32_t i = 0; i < count; ++i) {
        EXPECT_GE(islands.size(i), ranks / count) << ranks;
        EXPECT_LE(islands.size(i), (ranks + count - 1) / count) << ranks;
      }
    }
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (const uint32_t i : {0u, 1u}) EXPECT_LE(equal_islands(ranks, 2).size(i), kMaxHopRanks) << ranks;
}

TEST(Slices, DivideThePacksAndKnowTheirOwner) {
  for (uint32_t size = 1; size <= kMaxHopRanks; ++size)
    for (const uint32_t packs : pack_counts()) {
      uint32_t next = 0;
      for (uint32_t k = 0; k < size; ++k) {
        const Slice slice = slice_of(packs, size, k);
        ASSERT_EQ(slice.begin, next) << packs << " packs, member " << k << " of " << size;
        ASSERT_LE(slice.end - slice.begin, (packs + size - 1) / size) << "room is for so many";
        for (uint32_t i = slice.begin; i < slice.end; ++i)
          ASSERT_EQ(owner_of(packs, size, i), k) << "pack " << i << " of " << packs << ", " << size;
        next = slice.end;
      }
      ASSERT_EQ(next, packs);
    }
}

TEST(Slices, OfTheLargestOperationDoNotWrap) {
  constexpr uint32_t kPacks = (16u << 20) / 16 * kMaxHopRanks;
  for (uint32_t size = 1; size <= kMaxHopRanks; ++size)
    for (uint32_t k = 0; k < size; ++k) {
      const Slice slice = slice_of(kPacks, size, k);
      ASSERT_LT(slice.begin, slice.end);
      EXPECT_EQ(owner_of(kPacks, size, slice.begin), k);
      EXPECT_EQ(owner_of(kPacks, size, slice.end - 1), k);
    }
}

/// Where a message about a pack passes between two islands it is between the owners of that pack. If those
/// are no partners, one writes to memory that it has not mapped.
TEST(Partners, AreAllThatEverOwnTheSamePack) {
  for (const Partition& partition : partitions()) {
    const Islands islands = islands_of(partition);
    for (const uint32_t packs : pack_counts())
      for (uint32_t i = 0; i < packs; ++i)
        for (uint32_t a = 0; a < islands.count; ++a)
          for (uint32_t b = 0; b < a; ++b) {
            const uint32_t owner_a = islands.member(a, owner_of(packs, islands.size(a), i)),
                           owner_b = islands.member(b, owner_of(packs, islands.size(b), i));
            ASSERT_TRUE(are_partners(islands, owner_a, owner_b) && are_partners(islands, owner_b, owner_a))
                << text_of(partition) << ": ranks " << owner_a << " and " << owner_b << ", pack " << i
                << " of " << packs;
          }
  }
}

/// A GPU can map few peers: no rank maps the memory of one that it never needs.
TEST(Partners, AreNoMoreThanThat) {
  for (const Partition& partition : partitions()) {
    const Islands islands = islands_of(partition);
    const auto ranks = static_cast<uint32_t>(partition.size());
    for (uint32_t a = 0; a < ranks; ++a) {
      EXPECT_FALSE(are_partners(islands, a, a)) << text_of(partition);
      for (uint32_t b = 0; b < ranks; ++b) {
        if (a == b) continue;
        const uint32_t ia = partition[a], ib = partition[b];
        if (ia == ib) {
          EXPECT_TRUE(are_partners(islands, a, b)) << text_of(partition) << ": mates " << a << ", " << b;
          continue;
        }
        bool ever = false;
        for (uint32_t packs = 1; packs <= 64 && !ever; ++packs) {
          const Slice sa = slice_of(packs, islands.size(ia), islands.place(a)),
                      sb = slice_of(packs, islands.size(ib), islands.place(b));
          ever = std::max(sa.begin, sb.begin) < std::min(sa.end, sb.end);
        }
        EXPECT_EQ(are_partners(islands, a, b), ever) << text_of(partition) << ": ranks " << a << ", " << b;
      }
    }
  }
}

/// What islands are for: few mappings. Two islands of eight: seven mates and one rank on the other side.
TEST(Partners, OfEqualIslandsAreTheMatesAndOneRankOfEachOther) {
  for (const uint32_t ranks : {4u, 8u, 16u}) {
    const Islands islands = equal_islands(ranks, 2);
    for (uint32_t a = 0; a < ranks; ++a) {
      uint32_t partners = 0;
      for (uint32_t b = 0; b < ranks; ++b) partners += are_partners(islands, a, b) ? 1 : 0;
      EXPECT_EQ(partners, ranks / 2) << "rank " << a << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace onehop::test
