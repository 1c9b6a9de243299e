// What a kernel is told: one rank's view of its communicator's memory, and one all-reduce. Both are plain
// data that is copied into the kernel's parameters; the protocol that uses them is in kernels/protocol/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/protocol/inbox.hpp"
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

constexpr size_t element_size(Element element) {
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

/// Operators, all of NCCL's that need no argument.
enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kAvg };
inline constexpr uint32_t kReductions = 5;

/// One rank's view of its communicator.
///
/// What a kernel needs first comes first: the constant cache is cold when it begins, and brings in 64 bytes
/// at a time. The peers stand in the order in which this rank sends to them, beginning with the rank after
/// it, so that not all ranks write to the same inbox at once; and so that a kernel finds each at a fixed
/// place.
struct CommView {
  State* state = nullptr;  ///< device memory of this rank alone
  InboxLayout layout;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  unsigned char* own = nullptr;  ///< this rank's inbox
  unsigned char* peers[kMaxRanks - 1] =
      {};                      ///< the inboxes of ranks rank + 1, rank + 2, ..., round to rank - 1
  Control* control = nullptr;  ///< pinned host memory
  uint64_t budget_ns = 0;      ///< longest wait for a peer; 0: none

  /// Rank r's inbox, as this rank addresses it. `rank` and `ranks` are set.
  unsigned char*& inbox(uint32_t r) { return r == rank ? own : peers[(r + ranks - rank - 1) % ranks]; }
  unsigned char* inbox(uint32_t r) const { return r == rank ? own : peers[(r + ranks - rank - 1) % ranks]; }
};

/// One all-reduce. `send` and `receive` hold `count` elements, aligned to the element; they may be
/// equal.
struct Operation {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  Element element = Element::kFloat32;
  Reduction reduction = Reduction::kSum;
};

}  // namespace onehop
