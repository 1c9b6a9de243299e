// How many blocks and threads a launch gets. Data, not protocol: ranks may differ in it, and from call to
// call.
#pragma once

#include <cstdint>

namespace onehop {

struct Geometry {
  uint32_t blocks = 1;
  uint32_t workers =
      32;  ///< threads per block that move data, a multiple of 32; one warp more keeps the turn
};

inline constexpr uint32_t kMaxBlocks = 32;
inline constexpr uint32_t kMaxWorkers = 256;

/// Workers for `packs` packs: one pack for each as long as the grid stays small enough to be resident beside
/// the job's own kernels (all blocks of a launch must run at once: each waits for peers), then more packs for
/// each.
constexpr Geometry geometry_for(uint32_t packs) {
  constexpr uint32_t kPreferredWorkers = 256;
  if (packs <= kPreferredWorkers) {
    const uint32_t warps = packs == 0 ? 1 : (packs + 31) / 32;
    return {1, warps * 32};
  }
  const uint32_t blocks = (packs + kPreferredWorkers - 1) / kPreferredWorkers;
  return {blocks < kMaxBlocks ? blocks : kMaxBlocks, kPreferredWorkers};
}

}  // namespace onehop
