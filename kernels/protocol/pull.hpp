// Pull: words go into the sender's outbox, once, and everyone reads them there. For links on which writes to
// many peers collapse, and for host memory.
//
// The words prove their arrival here as well, so nothing has to be released or acquired, and no flag goes
// ahead.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/line.hpp"
#include "kernels/protocol/push.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// How words lie in an outbox: flag words as they are ...
template <class Words>
struct Published {
  using Arrival = typename Words::Line;

  ONEHOP_HD static Arrival arrived_as(const Pack& sendable, uint32_t epoch) {
    return Words::encode(sendable, epoch);
  }
  struct Memo {};
  template <class Mem>
  ONEHOP_HD static Memo recall(Mem&, const Pack* /*shadow*/) {
    return {};
  }
  template <class Mem>
  ONEHOP_HD static void publish(Mem& memory, Pack* to, Pack* /*shadow*/, const Memo&, const Pack& sendable,
                                uint32_t epoch) {
    send_line<Words>(memory, to, sendable, epoch);
  }
  template <class Mem>
  ONEHOP_HD static Arrival look_for(Mem& memory, const Pack* from, const Pack* /*shadow*/, bool peek) {
    return peek_line<Words>(memory, from, peek);
  }
  template <class Mem>
  ONEHOP_HD static void look_again(Mem& memory, const Pack* from, bool peek, Arrival& arrival) {
    arrival = peek_line<Words>(memory, from, peek);
  }
  ONEHOP_HD static uint32_t judge(uint32_t seen, const Arrival& arrival, uint32_t epoch) {
    return Words::look(seen, arrival, epoch);
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return Words::complete(seen); }
  ONEHOP_HD static Pack own(const Arrival& arrival) { return Words::decode(arrival); }
  template <class Mem>
  ONEHOP_HD static Pack take(Mem&, const Arrival& arrival, Pack* /*shadow*/) {
    return Words::decode(arrival);
  }
};

/// ... and in place of sentinel words, change words: a word has arrived when it differs from what its place
/// held before. Where it would not differ, the sentinel stands for "the same again". So no place has to be
/// emptied, which in host memory would be as much to write as the data itself. Writer and readers remember
/// what each place held in shadows, which are their own device memory.
template <uint32_t kOtherNan>
struct Published<SentinelWordsOf<kOtherNan>> {
  using Words = SentinelWordsOf<kOtherNan>;
  static constexpr uint32_t kSame = Words::kEmpty;  ///< also what fresh memory and fresh shadows hold

  struct Arrival {
    Pack now, before;
  };

  ONEHOP_HD static Arrival arrived_as(const Pack& sendable, uint32_t /*epoch*/) {
    return {sendable, {{kSame, kSame, kSame, kSame}}};
  }
  using Memo = Pack;  ///< what a place holds
  template <class Mem>
  ONEHOP_HD static Memo recall(Mem& memory, const Pack* shadow) {
    return memory.recall(shadow);
  }
  template <class Mem>
  ONEHOP_HD static void publish(Mem& memory, Pack* to, Pack* shadow, const Memo& before, const Pack& sendable,
                                uint32_t /*epoch*/) {
    Pack now;
    ONEHOP_UNROLL
    for (int w = 0; w < 4; ++w) now.word[w] = sendable.word[w] == before.word[w] ? kSame : sendable.word[w];
    memory.send(to, now);
    memory.keep(shadow, now);
  }
  template <class Mem>
  ONEHOP_HD static Arrival look_for(Mem& memory, const Pack* from, const Pack* shadow, bool peek) {
    const Pack now = peek ? memory.peek(from) : memory.receive(from);
    return {now, memory.recall(shadow)};
  }
  template <class Mem>
  ONEHOP_HD static void look_again(Mem& memory, const Pack* from, bool peek, Arrival& arrival) {
    arrival.now = peek ? memory.peek(from) : memory.receive(from);
  }
  /// Counts words that have not changed.
  ONEHOP_HD static uint32_t judge(uint32_t seen, const Arrival& arrival, uint32_t /*epoch*/) {
    ONEHOP_UNROLL
    for (int w = 0; w < 4; ++w) seen |= arrival.now.word[w] == arrival.before.word[w] ? 1u : 0u;
    return seen;
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return seen == 0; }
  ONEHOP_HD static Pack own(const Arrival& arrival) { return arrival.now; }
  template <class Mem>
  ONEHOP_HD static Pack take(Mem& memory, const Arrival& arrival, Pack* shadow) {
    memory.keep(shadow, arrival.now);
    Pack payload;
    ONEHOP_UNROLL
    for (int w = 0; w < 4; ++w)
      payload.word[w] = arrival.now.word[w] == kSame ? arrival.before.word[w] : arrival.now.word[w];
    return payload;
  }
};

/// As Push. A place always has the same readers, whatever the size of a call: those who read it know what it
/// held before. So the slices of Area::kScatter begin at fixed places.
template <class Words>
class Pull {
 public:
  using Form = Published<Words>;
  using Arrival = typename Form::Arrival;
  static constexpr bool kFar = true;  ///< each look crosses the link: never look again at what has arrived

  ONEHOP_HD Pull(const HopView& comm, const Turn& turn, uint32_t /*share*/ = 0)
      : comm_(comm),
        epoch_(turn.epoch),
        slot_(outbox_slot(Words::kKind, turn.epoch)),
        region_(comm.layout.outbox_region(Words::kKind, slot_)) {}

  // What a place holds must be known before it is written to. The load of it takes as long as that of the
  // turn, so it is begun early: for both slots before the turn is known, or well ahead of the store.
  using Memo = typename Form::Memo;
  struct EarlyMemo {
    Memo of_slot[kChangeSlots];
  };
  template <class Mem>
  ONEHOP_HD static EarlyMemo recall_all_early(Mem& memory, const HopView& comm, uint32_t i) {
    EarlyMemo early;
    ONEHOP_UNROLL
    for (uint32_t slot = 0; slot < kChangeSlots; ++slot)
      early.of_slot[slot] = Form::recall(memory, comm.shadows + comm.layout.own_shadow(slot) +
                                                     comm.layout.outbox_capacity(Words::kKind) + i);
    return early;
  }
  ONEHOP_HD Memo pick(const EarlyMemo& early) const {
    return slot_ == 0 ? early.of_slot[0] : early.of_slot[1];
  }
  template <class Mem>
  ONEHOP_HD Memo recall(Mem& memory, Area area, uint32_t owner, uint32_t i) const {
    return Form::recall(memory, own_shadow(place(area, owner, i)));
  }

  template <class Mem>
  ONEHOP_HD void scatter(Mem& memory, uint32_t /*p*/, uint32_t owner, uint32_t j, const Pack& sendable,
                         const Memo& memo) const {
    publish(memory, place(Area::kScatter, owner, j), sendable, memo);
  }
  /// There is one copy, whoever reads it.
  template <uint32_t kBound, class Mem>
  ONEHOP_HD void send_to_all(Mem& memory, uint32_t i, const Pack& sendable, const Memo& memo) const {
    publish(memory, place(Area::kAll, 0, i), sendable, memo);
  }

  ONEHOP_HD static uint32_t rank_of(uint32_t r) { return r; }

  /// Where the packs i of all sources lie: everything that they have in common.
  struct Place {
    uint32_t at;    ///< packs from the beginning of an outbox
    Pack* shadows;  ///< of rank 0's
  };
  ONEHOP_HD Place place_of(Area area, uint32_t i) const {
    return {region_ + place(area, comm_.rank, i) * Words::kPacks,
            comm_.shadows + comm_.layout.shadow_of(slot_, 0) + (area == Area::kAll ? slice_lines() + i : i)};
  }
  template <class Mem>
  ONEHOP_HD Arrival look_for(Mem& memory, uint32_t r, const Place& p) const {
    return Form::look_for(memory, from(r, p), shadow_of(r, p), comm_.in_host);
  }
  /// `strong`: not with peek(), which could go on seeing what was there before.
  template <class Mem>
  ONEHOP_HD void look_again(Mem& memory, uint32_t r, const Place& p, bool strong, Arrival& arrival) const {
    Form::look_again(memory, from(r, p), comm_.in_host && !strong, arrival);
  }
  ONEHOP_HD Arrival arrived_as(const Pack& sendable) const { return Form::arrived_as(sendable, epoch_); }
  ONEHOP_HD uint32_t judge(uint32_t seen, const Arrival& arrival) const {
    return Form::judge(seen, arrival, epoch_);
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return Form::complete(seen); }
  template <class Mem>
  ONEHOP_HD Pack take(Mem& memory, uint32_t r, const Place& p, const Arrival& arrival) const {
    return Form::take(memory, arrival, shadow_of(r, p));
  }

  ONEHOP_HD static Pack own(const Arrival& arrival) { return Form::own(arrival); }

  /// Nothing that would have to be emptied.
  ONEHOP_HD uint32_t left(uint32_t /*packs*/) const { return 0; }

 private:
  ONEHOP_HD uint32_t slice_lines() const { return comm_.layout.outbox_slice(Words::kKind); }
  /// In lines from the beginning of a slot.
  ONEHOP_HD uint32_t place(Area area, uint32_t owner, uint32_t i) const {
    return area == Area::kAll ? comm_.layout.outbox_capacity(Words::kKind) + i : owner * slice_lines() + i;
  }
  ONEHOP_HD Pack* own_shadow(uint32_t at) const {
    return comm_.shadows + comm_.layout.own_shadow(slot_) + at;
  }

  template <class Mem>
  ONEHOP_HD void publish(Mem& memory, uint32_t at, const Pack& sendable, const Memo& memo) const {
    Form::publish(memory, reinterpret_cast<Pack*>(comm_.own) + region_ + at * Words::kPacks, own_shadow(at),
                  memo, sendable, epoch_);
  }
  ONEHOP_HD const Pack* from(uint32_t r, const Place& p) const {
    return reinterpret_cast<const Pack*>(comm_.staging(r)) + p.at;
  }
  ONEHOP_HD Pack* shadow_of(uint32_t r, const Place& p) const {
    return p.shadows + r * comm_.layout.read_packs();
  }

  const HopView& comm_;
  const uint32_t epoch_, slot_, region_;
};

}  // namespace onehop
