// Turns: every operation of a communicator has an epoch and a slot, the same on all ranks, counted in device
// memory.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/memory.hpp"

namespace onehop {

/// What the proof in README.md rests on. Tests instantiate the protocol with broken rules, and must see it
/// fail.
struct ProvenRules {
  static constexpr uint32_t kInboxSlots = onehop::kInboxSlots;
  static constexpr bool kClears = true;
  static constexpr bool kRenews = true;
  static constexpr bool kTurnPerBlock = false;
};

template <class Rules = ProvenRules>
ONEHOP_HD constexpr uint32_t slot_before(uint32_t slot) {
  return slot == 0 ? Rules::kInboxSlots - 1 : slot - 1;
}
/// Slots of the outbox follow from the epoch alone: their number divides 2^32.
ONEHOP_HD constexpr uint32_t outbox_slot(WordKind kind, uint32_t epoch) {
  return epoch % Layout::outbox_slots(kind);
}

/// What an operation leaves behind to be emptied: packs from the beginning of each region of the inbox. Flag
/// words are not emptied, nor is an outbox.
template <class Words>
ONEHOP_HD constexpr uint32_t left_in_inbox(uint32_t packs) {
  return Words::kKind == WordKind::kSentinel ? packs : 0;
}

/// The turn after `turn`, if this operation leaves `left` behind.
template <class Rules = ProvenRules>
ONEHOP_HD constexpr Turn turn_after(const Turn& turn, uint32_t left) {
  return {turn.epoch + 1, turn.slot + 1 == Rules::kInboxSlots ? 0 : turn.slot + 1, left, 0};
}

template <class Rules>
ONEHOP_HD State* state_of(const HopView& comm, uint32_t block) {
  return Rules::kTurnPerBlock ? comm.state + block : comm.state;
}

/// By each block's keeper, once all threads of its block have read the turn: the last block to come here
/// advances it.
///
/// arrive() is acquire and release, on this GPU. It pairs with itself in the other blocks: their reads of the
/// turn (ordered before their arrive by group.sync()) happen before the store below. Without that a block
/// could read the next operation's turn and wait in the wrong slot, for ever. Relaxed would not order a read
/// that is still under way; system scope is not needed, for no other GPU looks at the turn. The store itself
/// needs no release: its reader is the next kernel.
template <class Rules, class Memory, class Group>
ONEHOP_HD void keep_turn(Memory& memory, const Group& group, const HopView& comm, const Turn& next) {
  State* state = state_of<Rules>(comm, group.block());
  if (!Rules::kTurnPerBlock && group.blocks() > 1) {
    if (memory.arrive(&state->arrivals) + 1 != group.blocks()) return;
    memory.reset(&state->arrivals);
  }
  memory.store_turn(&state->turn, next);
}

/// Empties what the previous operation left in the inbox, for the operation that comes two after this one. By
/// the workers.
template <class Rules, uint32_t kBound, class Memory, class Group>
ONEHOP_HD void clear_old_words(Memory& memory, const Group& group, const HopView& comm, const Turn& turn) {
  if (!Rules::kClears) return;
  const Pack empty = {{0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu}};
  Pack* slot = reinterpret_cast<Pack*>(comm.own) +
               comm.layout.inbox_region(WordKind::kSentinel, slot_before<Rules>(turn.slot), 0);
  for (uint32_t i = group.worker(); i < turn.left; i += group.workers()) {
    ONEHOP_UNROLL
    for (uint32_t source = 0; source < kBound; ++source)
      if (source < comm.ranks && source != comm.rank)
        memory.clear(slot + source * comm.layout.inbox + i, empty);
  }
}

/// Flag words are not emptied: an old flag is not the epoch. But it would be, billions of operations later
/// (README.md has the numbers), where no operation in between was long enough to write over it. So each
/// operation renews one line per region, in rotation: no flag gets older than a few times the capacity, in
/// operations. The rotation moves once per round of the slots: otherwise a capacity that is a multiple of
/// their number would let each slot see only some of the lines. By one thread of the launch.
template <class Rules, class Memory>
ONEHOP_HD void renew_flags(Memory& memory, const HopView& comm, const Turn& turn) {
  if (!Rules::kRenews) return;
  constexpr uint32_t kPacks = Layout::expansion(WordKind::kFlag);
  const Pack renewed = {{0, turn.epoch, 0, turn.epoch}};
  Pack* own = reinterpret_cast<Pack*>(comm.own);
  if (const uint32_t capacity = comm.layout.inbox_capacity(WordKind::kFlag); capacity != 0) {
    const uint32_t line = turn.epoch / kInboxSlots % capacity;
    Pack* to =
        own + comm.layout.inbox_region(WordKind::kFlag, slot_before<Rules>(turn.slot), 0) + line * kPacks;
    for (uint32_t source = 0; source < comm.ranks; ++source, to += comm.layout.inbox) {
      if (source == comm.rank) continue;
      for (uint32_t i = 0; i < kPacks; ++i) memory.clear(to + i, renewed);
    }
  }
  // In an outbox a peer may still read what the previous operation wrote, but nothing older.
  if (const uint32_t lines = 2 * comm.layout.outbox_capacity(WordKind::kFlag); lines != 0) {
    const uint32_t line = turn.epoch / kFlagSlots % lines;
    const uint32_t slot = outbox_slot(WordKind::kFlag, turn.epoch - 2);
    Pack* to = own + comm.layout.outbox_region(WordKind::kFlag, slot) + line * kPacks;
    for (uint32_t i = 0; i < kPacks; ++i) memory.clear(to + i, renewed);
  }
}

/// What every method does between its first sends and its first wait, where the time of the hop hides it: the
/// turn is passed on, and old words are emptied. By every thread of the group.
template <class Rules, uint32_t kBound, class Memory, class Group>
ONEHOP_HD void pass_turn(Memory& memory, const Group& group, const HopView& comm, const Turn& turn,
                         uint32_t left) {
  group.sync();  // every thread of the block has read the turn
  if (group.is_keeper()) {
    keep_turn<Rules>(memory, group, comm, turn_after<Rules>(turn, left));
    if (group.block() == 0) renew_flags<Rules>(memory, comm, turn);
  }
  if (group.is_worker()) clear_old_words<Rules, kBound>(memory, group, comm, turn);
}

}  // namespace onehop
