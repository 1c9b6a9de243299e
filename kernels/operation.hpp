// What a kernel is told: one rank's view of its communicator's memory, and one all-reduce. Both are plain
// data that is copied into the kernel's parameters; the protocol that uses them is in kernels/protocol/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/protocol/inbox.hpp"
#include "kernels/protocol/state.hpp"

namespace onehop {

/// Element types that the kernels know. A sum of integers is the same for either sign, so there is one type
/// for both.
enum class Element : uint8_t { kFloat32, kFloat16, kBfloat16, kFloat64, kInteger32, kInteger64 };

constexpr size_t element_size(Element element) {
  switch (element) {
    case Element::kFloat16:
    case Element::kBfloat16:
      return 2;
    case Element::kFloat32:
    case Element::kInteger32:
      return 4;
    case Element::kFloat64:
    case Element::kInteger64:
      return 8;
  }
  return 0;
}

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

/// One all-reduce (sum). `send` and `receive` hold `count` elements, aligned to the element; they may be
/// equal.
struct Operation {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  Element element = Element::kFloat32;
};

}  // namespace onehop
