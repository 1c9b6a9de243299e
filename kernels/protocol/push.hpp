// Push: words go into the receiver's inbox.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/line.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// What a word is for: a part that one rank alone reads (the first hop of a two-shot), or one that all others
/// read.
enum class Area { kScatter, kAll };

/// Where one operation's words lie. In each region the words of Area::kScatter come first, `share` of them,
/// then those of Area::kAll.
template <class Words>
class Push {
 public:
  using Arrival = typename Words::Line;  ///< what is known of a word while it is waited for
  static constexpr bool kFar = false;    ///< words are looked for in this GPU's own memory

  ONEHOP_HD Push(const HopView& comm, const Turn& turn, uint32_t share = 0)
      : comm_(comm),
        epoch_(turn.epoch),
        share_(share),
        to_(comm.layout.inbox_region(Words::kKind, turn.slot, comm.rank)),
        slot_(reinterpret_cast<const Pack*>(comm.own) + comm.layout.inbox_region(Words::kKind, turn.slot, 0)),
        stride_(comm.layout.inbox) {}

  /// What must be known of a place before it is written to, asked for ahead of time: here nothing.
  struct Memo {};
  template <class Mem>
  ONEHOP_HD static Memo recall_all_early(Mem&, const HopView&, uint32_t /*i*/) {
    return {};
  }
  ONEHOP_HD Memo pick(const Memo& early) const { return early; }
  template <class Mem>
  ONEHOP_HD Memo recall(Mem&, Area, uint32_t /*owner*/, uint32_t /*i*/) const {
    return {};
  }

  /// Pack j of a slice, to its owner, the p-th peer (CommView::peers).
  template <class Mem>
  ONEHOP_HD void scatter(Mem& memory, uint32_t p, uint32_t /*owner*/, uint32_t j, const Pack& sendable,
                         const Memo& = {}) const {
    send_to(memory, p, j, sendable);
  }
  template <uint32_t kBound, class Mem>
  ONEHOP_HD void send_to_all(Mem& memory, uint32_t i, const Pack& sendable, const Memo&) const {
    ONEHOP_UNROLL
    for (uint32_t p = 0; p + 1 < kBound; ++p)
      if (p + 1 < comm_.ranks) send_to(memory, p, share_ + i, sendable);
  }
  /// At a place of the region, counted in lines from its beginning.
  template <class Mem>
  ONEHOP_HD void send_to(Mem& memory, uint32_t p, uint32_t place, const Pack& sendable) const {
    send_into(memory, comm_.peers[p], place, sendable);
  }
  /// Into the inbox of the rank whose staging memory begins at `peer`.
  template <class Mem>
  ONEHOP_HD void send_into(Mem& memory, unsigned char* peer, uint32_t place, const Pack& sendable) const {
    send_line<Words>(memory, reinterpret_cast<Pack*>(peer) + to_ + place * Words::kPacks, sendable, epoch_);
  }

  /// Rank r's words for this rank.
  ONEHOP_HD const Pack* from(uint32_t r) const { return slot_ + r * stride_; }
  ONEHOP_HD uint32_t place(Area area, uint32_t i) const { return area == Area::kAll ? share_ + i : i; }
  ONEHOP_HD static uint32_t rank_of(uint32_t r) { return r; }

  /// Where the packs i of all sources lie: everything that they have in common.
  using Place = uint32_t;
  ONEHOP_HD Place place_of(Area area, uint32_t i) const { return place(area, i) * Words::kPacks; }
  /// Takes a first look at a pack of rank r; look_again() takes another.
  template <class Mem>
  ONEHOP_HD Arrival look_for(Mem& memory, uint32_t r, Place p) const {
    return receive_line<Words>(memory, from(r) + p);
  }
  template <class Mem>
  ONEHOP_HD void look_again(Mem& memory, uint32_t r, Place p, bool /*strong*/, Arrival& arrival) const {
    arrival = look_for(memory, r, p);
  }
  /// A pack that passes for arrived.
  ONEHOP_HD Arrival arrived_as(const Pack& sendable) const { return Words::encode(sendable, epoch_); }
  // See Words::look().
  ONEHOP_HD uint32_t judge(uint32_t seen, const Arrival& arrival) const {
    return Words::look(seen, arrival, epoch_);
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return Words::complete(seen); }
  /// The payload of a pack that has arrived.
  template <class Mem>
  ONEHOP_HD Pack take(Mem&, uint32_t /*r*/, Place, const Arrival& arrival) const {
    return Words::decode(arrival);
  }

  /// Of a pack that arrived_as() made.
  ONEHOP_HD static Pack own(const Arrival& arrival) { return Words::decode(arrival); }

  /// What turn_after() must know of an operation that sent `packs` packs to all.
  ONEHOP_HD uint32_t left(uint32_t packs) const { return left_in_inbox<Words>(share_ + packs); }

 private:
  const HopView& comm_;
  const uint32_t epoch_, share_;
  const uint32_t to_;       ///< of this rank's region in an inbox
  const Pack* const slot_;  ///< of rank 0's region in this rank's inbox
  const uint32_t stride_;   ///< packs from one source's region to the next
};

}  // namespace onehop
