// The byte map of a rank's staging memory. It has an inbox, which the peers write and the rank alone reads
// (push methods), and an outbox, which the rank alone writes and the peers read (pull methods):
//
//   sentinel and change words: | inbox: slot 0 .. 2, each src 0 .. src n | outbox: slot 0, 1 |
//   flag words:                | the same                               | outbox: slot 0 .. 3 |
//
// A slot of an outbox has two parts of equal size: slices, which one rank reads each, and what all ranks
// read.
//
// Each source has its own region in each slot of the inbox, so a word has exactly one writer at a time.
// Offsets of regions come from what was agreed at set-up, never from the size of a call: calls of different
// sizes must find the same place empty. The two kinds of words never share memory, nor do push and pull: what
// one leaves behind could pass for data, or for a flag, of the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/protocol/annotate.hpp"

namespace onehop {

inline constexpr uint32_t kMaxRanks = 16;
/// Ranks that one hop can join. More ranks need islands.
inline constexpr uint32_t kMaxHopRanks = 8;
/// See README.md beside this file: why so many are enough, and fewer not.
inline constexpr uint32_t kInboxSlots = 3, kChangeSlots = 2, kFlagSlots = 4;

/// 16 bytes: the unit of every load and store between GPUs.
struct alignas(16) Pack {
  uint32_t word[4];
};
static_assert(sizeof(Pack) == 16);

enum class WordKind : uint32_t { kSentinel = 0, kFlag = 1 };

/// Counts packs in 32 bits: staging memory stays far below 64 GiB.
struct Layout {
  uint32_t ranks = 0;
  uint32_t inbox = 0;   ///< packs of one region of the inbox: one source, one slot, one kind of words
  uint32_t outbox = 0;  ///< packs of one part of a slot of the outbox, for one kind of words

  /// Packs of memory that carry one pack of payload.
  ONEHOP_HD static constexpr uint32_t expansion(WordKind kind) { return kind == WordKind::kFlag ? 2 : 1; }
  /// Packs of payload that a region of the inbox, or one part of a slot of the outbox, holds.
  ONEHOP_HD constexpr uint32_t inbox_capacity(WordKind kind) const { return inbox / expansion(kind); }
  ONEHOP_HD constexpr uint32_t outbox_capacity(WordKind kind) const { return outbox / expansion(kind); }
  /// Packs of payload in the slice of one reader.
  ONEHOP_HD constexpr uint32_t outbox_slice(WordKind kind) const { return outbox_capacity(kind) / ranks; }
  ONEHOP_HD static constexpr uint32_t outbox_slots(WordKind kind) {
    return kind == WordKind::kFlag ? kFlagSlots : kChangeSlots;
  }

  /// First pack of the region that `source` writes in `slot`.
  ONEHOP_HD constexpr uint32_t inbox_region(WordKind kind, uint32_t slot, uint32_t source) const {
    return area(kind) + (slot * ranks + source) * inbox;
  }
  ONEHOP_HD constexpr uint32_t outbox_region(WordKind kind, uint32_t slot) const {
    return area(kind) + kInboxSlots * ranks * inbox + slot * 2 * outbox;
  }

  ONEHOP_HD constexpr size_t sentinel_bytes() const { return area_packs(WordKind::kSentinel) * sizeof(Pack); }
  ONEHOP_HD constexpr size_t bytes() const {
    return sentinel_bytes() + area_packs(WordKind::kFlag) * sizeof(Pack);
  }

  // Shadows (pull.hpp), in the rank's own device memory: of a slot of its outbox, and of what it reads in
  // that of rank r, its slice and what is for all.
  ONEHOP_HD constexpr uint32_t own_shadow(uint32_t slot) const { return slot * 2 * outbox; }
  ONEHOP_HD constexpr uint32_t shadow_of(uint32_t slot, uint32_t r) const {
    return kChangeSlots * 2 * outbox + (slot * ranks + r) * read_packs();
  }
  ONEHOP_HD constexpr size_t shadow_bytes() const {
    return (size_t{kChangeSlots} * 2 * outbox + size_t{kChangeSlots} * ranks * read_packs()) * sizeof(Pack);
  }
  /// Packs from the shadow of one rank's slot to the next rank's.
  ONEHOP_HD constexpr uint32_t read_packs() const { return outbox_slice(WordKind::kSentinel) + outbox; }

 private:
  ONEHOP_HD constexpr size_t area_packs(WordKind kind) const {
    return size_t{kInboxSlots} * ranks * inbox + size_t{outbox_slots(kind)} * 2 * outbox;
  }
  ONEHOP_HD constexpr uint32_t area(WordKind kind) const {
    return kind == WordKind::kFlag ? static_cast<uint32_t>(area_packs(WordKind::kSentinel)) : 0;
  }
};

}  // namespace onehop
