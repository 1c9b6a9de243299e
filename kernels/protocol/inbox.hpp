// The byte map of an inbox: memory of one rank that its peers write and it alone reads.
//
//   sentinel area                                        flag area
//   | slot 0         | slot 1         | slot 2         | | slot 0 | slot 1 | slot 2 |
//   | src 0 .. src n | src 0 .. src n | src 0 .. src n | |  (the same, two packs for each pack of payload)
//
// Each source has its own region in each slot, so a word has exactly one writer at a time. Offsets come from
// the capacity agreed at set-up, never from the size of a call: calls of different sizes must find the same
// place empty. The two kinds of words never share memory: what one kind leaves behind could pass for data, or
// for a flag, of the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/protocol/annotate.hpp"

namespace onehop {

inline constexpr uint32_t kMaxRanks = 8;
inline constexpr uint32_t kSlots =
    3;  ///< see README.md beside this file: why three are enough, and two are not

/// 16 bytes: the unit of every load and store between GPUs.
struct alignas(16) Pack {
  uint32_t word[4];
};
static_assert(sizeof(Pack) == 16);

enum class WordKind : uint32_t { kSentinel = 0, kFlag = 1 };

/// Counts packs in 32 bits: inboxes stay far below 64 GiB.
struct InboxLayout {
  uint32_t sources = 0;   ///< ranks of the communicator
  uint32_t capacity = 0;  ///< packs of payload that one source can send in one operation

  /// Inbox packs that carry one pack of payload.
  ONEHOP_HD static constexpr uint32_t expansion(WordKind kind) { return kind == WordKind::kFlag ? 2 : 1; }

  ONEHOP_HD constexpr uint32_t area_packs(WordKind kind) const {
    return kSlots * sources * capacity * expansion(kind);
  }

  /// First pack of the region that `source` writes in `slot`.
  ONEHOP_HD constexpr uint32_t region(WordKind kind, uint32_t slot, uint32_t source) const {
    const uint32_t area = kind == WordKind::kFlag ? area_packs(WordKind::kSentinel) : 0;
    return area + (slot * sources + source) * capacity * expansion(kind);
  }

  ONEHOP_HD constexpr size_t bytes() const {
    return (size_t{area_packs(WordKind::kSentinel)} + area_packs(WordKind::kFlag)) * sizeof(Pack);
  }
  ONEHOP_HD constexpr size_t sentinel_bytes() const { return area_packs(WordKind::kSentinel) * sizeof(Pack); }
};

}  // namespace onehop
