// The methods of all-reduce, and how much one operation of each can carry.
#pragma once

#include <cstdint>

#include "kernels/islands.hpp"
#include "kernels/protocol/layout.hpp"

namespace onehop {

enum class Method : uint8_t {
  kOneShot,        ///< send all data to every peer, add: one hop
  kTwoShot,        ///< send each owner its slice; the owner adds and sends the result to all: two hops
  kOneShotStaged,  ///< one-shot, to one peer after the other: one stream out of and into each GPU at a time
  kTwoShotStaged,
  kOneShotPull,  ///< publish all data in the own outbox, everyone reads it
  kTwoShotPull,
  kIslands,  ///< slices inside each island, sums from island to island, results back and inside
};
inline constexpr uint32_t kMethods = 7;

constexpr const char* name_of(Method method) {
  constexpr const char* kNames[kMethods] = {"one-shot push",   "two-shot push", "one-shot staged",
                                            "two-shot staged", "one-shot pull", "two-shot pull",
                                            "islands"};
  return kNames[static_cast<uint32_t>(method)];
}

constexpr bool is_pull(Method method) {
  return method == Method::kOneShotPull || method == Method::kTwoShotPull;
}

/// Packs of accumulators for each pack of elements: fp16, bf16 and fp8 are added up in fp32.
constexpr uint32_t kMaxWidePacks = 4;

/// Packs of payload that one operation can carry; 0: the method cannot serve this communicator. `wide_packs`:
/// of the element type (Accumulators::packs_of).
constexpr uint32_t largest_operation(Method method, const Layout& layout, WordKind kind,
                                     const Islands& islands, uint32_t wide_packs) {
  const uint32_t ranks = layout.ranks, inbox = layout.inbox_capacity(kind),
                 outbox = layout.outbox_capacity(kind);
  if (method != Method::kIslands && ranks > kMaxHopRanks) return 0;
  switch (method) {
    case Method::kOneShot:
    case Method::kOneShotStaged:
      return inbox;
    case Method::kTwoShot:
    case Method::kTwoShotStaged:
      return inbox / 2 * ranks;
    case Method::kOneShotPull:
      return outbox;
    case Method::kTwoShotPull:
      return layout.outbox_slice(kind) * ranks;
    case Method::kIslands:
      if (islands.runs < 2) return 0;
      return inbox / (2 + wide_packs * (islands.runs - 1u)) * islands.smallest;
  }
  return 0;
}

}  // namespace onehop
