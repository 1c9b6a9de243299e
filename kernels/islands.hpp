// Islands: a partition of a communicator's ranks into groups with fast links inside.
#pragma once

#include <cstdint>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/layout.hpp"

namespace onehop {

/// Any partition; each island has 1 to kMaxHopRanks members. Plain data for a kernel's parameters.
///
/// A run is a longest sequence of consecutive ranks of one island: the order in which a sum passes from
/// island to island. {0,1} {2,3} has two runs, {0,2} {1,3} has four.
struct Islands {
  uint8_t island[kMaxRanks] = {};     ///< of each rank
  uint8_t members[kMaxRanks] = {};    ///< ranks, island by island, ascending in each
  uint8_t begin[kMaxRanks + 1] = {};  ///< of each island in `members`, and the end
  uint8_t run[kMaxRanks + 1] = {};    ///< first rank of each run, and the number of ranks
  uint8_t count = 0;
  uint8_t runs = 0;
  uint8_t smallest = 0;  ///< members of the smallest island

  ONEHOP_HD constexpr uint32_t size(uint32_t i) const {
    return static_cast<uint32_t>(begin[i + 1] - begin[i]);
  }
  ONEHOP_HD constexpr uint32_t member(uint32_t i, uint32_t k) const { return members[begin[i] + k]; }
  /// The position of `rank` in its island.
  ONEHOP_HD constexpr uint32_t place(uint32_t rank) const {
    uint32_t k = 0;
    while (member(island[rank], k) != rank) ++k;
    return k;
  }
};

/// The islands of `ranks` ranks, rank r in island `island[r]`; islands are numbered from 0 without gaps.
constexpr Islands make_islands(const uint8_t* island, uint32_t ranks) {
  Islands islands;
  uint32_t filled = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    islands.island[r] = island[r];
    if (island[r] >= islands.count) islands.count = static_cast<uint8_t>(island[r] + 1);
    if (r == 0 || island[r] != island[r - 1]) islands.run[islands.runs++] = static_cast<uint8_t>(r);
  }
  islands.run[islands.runs] = static_cast<uint8_t>(ranks);
  for (uint32_t i = 0; i < islands.count; ++i) {
    for (uint32_t r = 0; r < ranks; ++r)
      if (island[r] == i) islands.members[filled++] = static_cast<uint8_t>(r);
    islands.begin[i + 1] = static_cast<uint8_t>(filled);
    if (i == 0 || islands.size(i) < islands.smallest)
      islands.smallest = static_cast<uint8_t>(islands.size(i));
  }
  return islands;
}

/// `count` islands of consecutive ranks, as equal in size as can be.
constexpr Islands equal_islands(uint32_t ranks, uint32_t count) {
  uint8_t island[kMaxRanks] = {};
  for (uint32_t r = 0; r < ranks; ++r) island[r] = static_cast<uint8_t>(r * count / ranks);
  return make_islands(island, ranks);
}

/// Member k's slice of `packs` packs in an island of `size` members.
struct Slice {
  uint32_t begin, end;
};
ONEHOP_HD constexpr Slice slice_of(uint32_t packs, uint32_t size, uint32_t k) {
  return {static_cast<uint32_t>(uint64_t{packs} * k / size),
          static_cast<uint32_t>(uint64_t{packs} * (k + 1) / size)};
}
/// The member in whose slice pack `i` lies.
ONEHOP_HD constexpr uint32_t owner_of(uint32_t packs, uint32_t size, uint32_t i) {
  return static_cast<uint32_t>(((uint64_t{i} + 1) * size - 1) / packs);
}

/// Whether ranks a and b ever send each other anything: they are mates, or their slices overlap.
constexpr bool are_partners(const Islands& islands, uint32_t a, uint32_t b) {
  const uint32_t ia = islands.island[a], ib = islands.island[b];
  if (ia == ib) return a != b;
  const uint32_t sa = islands.size(ia), sb = islands.size(ib), ka = islands.place(a), kb = islands.place(b);
  return ka * sb < (kb + 1) * sa && kb * sa < (ka + 1) * sb;
}

}  // namespace onehop
