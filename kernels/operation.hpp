// What a kernel is told: one rank's view of its communicator's memory, and one all-reduce. Both are plain
// data that is copied into the kernel's parameters; the protocol that uses them is in kernels/protocol/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/islands.hpp"
#include "kernels/method.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/layout.hpp"
#include "kernels/protocol/state.hpp"

namespace onehop {

/// Element types, NCCL's all.
enum class Element : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
};
inline constexpr uint32_t kElements = 12;

ONEHOP_HD constexpr size_t element_size(Element element) {
  switch (element) {
    case Element::kInt8:
    case Element::kUint8:
    case Element::kFloat8e4m3:
    case Element::kFloat8e5m2:
      return 1;
    case Element::kFloat16:
    case Element::kBfloat16:
      return 2;
    case Element::kInt32:
    case Element::kUint32:
    case Element::kFloat32:
      return 4;
    case Element::kInt64:
    case Element::kUint64:
    case Element::kFloat64:
      return 8;
  }
  return 0;
}

/// The words that carry an element: those of 4 bytes or less that have a NaN to spare need no flag.
constexpr WordKind word_kind(Element element) {
  switch (element) {
    case Element::kFloat16:
    case Element::kFloat32:
    case Element::kBfloat16:
    case Element::kFloat8e4m3:
    case Element::kFloat8e5m2:
      return WordKind::kSentinel;
    default:
      return WordKind::kFlag;
  }
}

/// Packs of unrounded sums for each pack of elements: fp16, bf16 and fp8 are added up in fp32, every other
/// type in itself.
ONEHOP_HD constexpr uint32_t wide_packs(Element element) {
  switch (element) {
    case Element::kFloat16:
    case Element::kBfloat16:
      return 2;
    case Element::kFloat8e4m3:
    case Element::kFloat8e5m2:
      return 4;
    default:
      return 1;
  }
}

/// Operators, all of NCCL's that need no argument.
enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kAvg };
inline constexpr uint32_t kReductions = 5;

/// One rank's view of a communicator of up to kMaxHopRanks ranks: all that methods other than islands need.
///
/// What a kernel needs first comes first: the constant cache is cold when it begins, and brings in 64 bytes
/// at a time. The peers stand in the order in which this rank sends to them, beginning with the rank after
/// it, so that not all ranks write to the same inbox at once; and so that a kernel finds each at a fixed
/// place. And it is small: every launch copies it.
struct HopView {
  State* state = nullptr;  ///< device memory of this rank alone
  Layout layout;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  bool in_host = false;                         ///< staging memory is in host memory
  unsigned char* own = nullptr;                 ///< this rank's staging memory
  Pack* shadows = nullptr;                      ///< device memory of this rank alone; for pull methods
  unsigned char* peers[kMaxHopRanks - 1] = {};  ///< that of ranks rank + 1, rank + 2, ..., round to rank - 1
  Control* control = nullptr;                   ///< pinned host memory
  uint64_t budget_ns = 0;                       ///< longest wait for a peer; 0: none

  /// Rank r's staging memory, as this rank addresses it.
  ONEHOP_HD unsigned char* staging(uint32_t r) const { return r == rank ? own : peers[place_of(r)]; }
  /// The rank to which this rank sends in place p, and the one that sends to this rank in the same place.
  ONEHOP_HD uint32_t rank_after(uint32_t p) const { return wrapped(rank + 1 + p); }
  ONEHOP_HD uint32_t rank_before(uint32_t p) const { return wrapped(rank + ranks - 1 - p); }
  /// Rank r's place among the peers.
  ONEHOP_HD uint32_t place_of(uint32_t r) const { return wrapped(r + ranks - rank - 1); }

 private:
  ONEHOP_HD uint32_t wrapped(uint32_t r) const { return r < ranks ? r : r - ranks; }
};

/// One rank's view of its communicator.
struct CommView : HopView {
  unsigned char* far_peers[kMaxRanks - kMaxHopRanks] = {};  ///< those beyond `peers`, in the same order
  Islands islands;                                          ///< for Method::kIslands alone
  uint32_t max_blocks = UINT32_MAX;                         ///< of a launch; for the host alone

  /// The peer in place p.
  ONEHOP_HD unsigned char*& peer(uint32_t p) {
    return p < kMaxHopRanks - 1 ? peers[p] : far_peers[p - (kMaxHopRanks - 1)];
  }
  ONEHOP_HD unsigned char* peer(uint32_t p) const {
    return p < kMaxHopRanks - 1 ? peers[p] : far_peers[p - (kMaxHopRanks - 1)];
  }
  /// Rank r's staging memory. `rank` and `ranks` are set.
  ONEHOP_HD unsigned char*& staging(uint32_t r) { return r == rank ? own : peer(place_of(r)); }
  ONEHOP_HD unsigned char* staging(uint32_t r) const { return r == rank ? own : peer(place_of(r)); }
};

/// One all-reduce. `send` and `receive` hold `count` elements, aligned to the element; they may be
/// equal.
struct Operation {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  Element element = Element::kFloat32;
  Reduction reduction = Reduction::kSum;
  Method method = Method::kOneShot;
  uint8_t most_blocks = 0;  ///< of the launch, for the host (geometry_of()); 0: as geometry_for() has it
  uint16_t workers = 0;     ///< of each block
};
static_assert(sizeof(Operation) == 32, "every launch copies it");

}  // namespace onehop
