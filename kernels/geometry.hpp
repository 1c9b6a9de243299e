// How many blocks and threads a launch gets. Data, not protocol: ranks may differ in it, and from call to
// call. Found by `kernel-bench sweep`; docs/results has what it printed.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"

namespace onehop {

struct Geometry {
  uint32_t blocks = 1;
  uint32_t workers =
      32;  ///< threads per block that move data, a multiple of 32; one warp more keeps the turn

  bool operator==(const Geometry&) const = default;
};

/// All blocks of a launch must run at once, beside the job's own kernels: each waits for peers.
inline constexpr uint32_t kMaxBlocks = 32;
inline constexpr uint32_t kMaxWorkers = 256;

/// Workers for `items`, one each as long as the grid stays small.
constexpr Geometry spread(uint32_t items, uint32_t workers_per_block, uint32_t max_blocks) {
  if (items <= workers_per_block) return {1, items == 0 ? 32 : (items + 31) / 32 * 32};
  const uint32_t blocks = (items + workers_per_block - 1) / workers_per_block;
  return {blocks < max_blocks ? blocks : max_blocks, workers_per_block};
}

/// Blocks that a launch may have on a GPU that `sharing` ranks of the communicator run on, 1 or more: all of
/// them must fit on it at once, beside those of another communicator. The kernels' launch bounds promise a
/// multiprocessor for each block, and no more. (Small GPUs, and parts of one, have fewer than 64.)
constexpr uint32_t blocks_beside(uint32_t multiprocessors, uint32_t sharing) {
  const uint32_t blocks = multiprocessors / (2 * sharing);
  return blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks;
}

/// In at most `max_blocks` blocks (0 is 1), of more workers as far as there may be more.
constexpr Geometry held_to(const Geometry& wanted, uint32_t max_blocks) {
  if (max_blocks == 0) max_blocks = 1;
  if (wanted.blocks <= max_blocks) return wanted;
  const uint32_t workers = (wanted.blocks * wanted.workers + max_blocks - 1) / max_blocks;
  return {max_blocks, workers < kMaxWorkers ? (workers + 31) / 32 * 32 : kMaxWorkers};
}

/// Threads that an operation of `packs` packs of payload can keep busy.
constexpr uint32_t items_of(Method method, uint32_t packs, const CommView& comm) {
  switch (method) {
    case Method::kOneShot:
    case Method::kOneShotStaged:
    case Method::kOneShotPull:
      return packs;
    case Method::kTwoShot:
    case Method::kTwoShotStaged:
    case Method::kTwoShotPull:
      return (packs + comm.ranks - 1) / comm.ranks;
    case Method::kIslands:
      return (packs + comm.islands.smallest - 1) / comm.islands.smallest;
  }
  return 0;
}

/// What a plan file may ask for: blocks of so many workers, and so many of them at most.
constexpr bool is_geometry(uint64_t most_blocks, uint64_t workers) {
  return most_blocks >= 1 && most_blocks <= kMaxBlocks && workers >= 32 && workers <= kMaxWorkers &&
         workers % 32 == 0;
}

/// The shape that is fastest where there is room.
constexpr Geometry wanted_for(Method method, uint32_t packs, const CommView& comm) {
  const uint32_t ranks = comm.ranks, items = items_of(method, packs, comm);
  // In host memory every look of every thread crosses the link. With several peers, more threads are more
  // looks in vain, which hold up the words that they look for.
  if (comm.in_host && ranks > 2) {
    const uint32_t few = ranks > 4 ? 1 : 2;
    if (method == Method::kOneShotPull) return spread(items, 256, items <= 4096 ? few : 8);
    if (method == Method::kTwoShotPull) return spread(items, 192, items <= 1024 ? few : 8);
  }
  switch (method) {
    case Method::kOneShot:
    case Method::kOneShotPull:
      // Each thread reads one pack of every rank: with many ranks, small blocks on more multiprocessors are
      // faster; with few, a second block only costs the arrival that it makes necessary.
      return spread(items, ranks > 4 && items <= 1024 ? 64 : 256, kMaxBlocks);
    case Method::kTwoShot:
    case Method::kTwoShotPull:
      return spread(items, items <= 1024 ? 64 : 256, kMaxBlocks);
    // One stream out of each GPU: few blocks keep it full, and more disturb each other.
    case Method::kOneShotStaged:
    case Method::kTwoShotStaged:
      return spread(items, 256, 4);
    case Method::kIslands:
      return spread(items, 256, kMaxBlocks);
  }
  return {};
}

/// For an operation of `packs` packs of payload.
constexpr Geometry geometry_for(Method method, uint32_t packs, const CommView& comm) {
  return held_to(wanted_for(method, packs, comm), comm.max_blocks);
}

/// As the operation asks for it, else as above. Small operations of a range get as few blocks as they fill.
constexpr Geometry geometry_of(const Operation& operation, uint32_t packs, const CommView& comm) {
  if (operation.most_blocks == 0) return geometry_for(operation.method, packs, comm);
  return held_to(spread(items_of(operation.method, packs, comm), operation.workers, operation.most_blocks),
                 comm.max_blocks);
}

}  // namespace onehop
