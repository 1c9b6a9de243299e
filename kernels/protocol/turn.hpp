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
  static constexpr uint32_t kSlots = onehop::kSlots;
  static constexpr bool kClears = true;
  static constexpr bool kTurnPerBlock = false;
};

template <class Rules = ProvenRules>
ONEHOP_HD constexpr uint32_t slot_before(uint32_t slot) {
  return slot == 0 ? Rules::kSlots - 1 : slot - 1;
}

/// The turn after `turn`, if this operation sends `sentinel_packs` packs per source to the sentinel areas.
///
/// `sweep` moves once per round of the slots, not once per operation: otherwise a capacity that is a multiple
/// of kSlots would let each slot see only every third value.
template <class Rules = ProvenRules>
ONEHOP_HD constexpr Turn turn_after(const Turn& turn, uint32_t sentinel_packs, uint32_t capacity) {
  Turn next;
  next.epoch = turn.epoch + 1;
  next.slot = turn.slot + 1 == Rules::kSlots ? 0 : turn.slot + 1;
  next.previous_packs = sentinel_packs;
  next.sweep = next.slot != 0 ? turn.sweep : (turn.sweep + 1 == capacity ? 0 : turn.sweep + 1);
  return next;
}

template <class Rules>
ONEHOP_HD State* state_of(const CommView& comm, uint32_t block) {
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
ONEHOP_HD void keep_turn(Memory& memory, const Group& group, const CommView& comm, const Turn& next) {
  State* state = state_of<Rules>(comm, group.block());
  if (!Rules::kTurnPerBlock && group.blocks() > 1) {
    if (memory.arrive(&state->arrivals) + 1 != group.blocks()) return;
    memory.reset(&state->arrivals);
  }
  memory.store_turn(&state->turn, next);
}

/// Empties what the previous operation left in this rank's inbox, for the operation that comes two after this
/// one. By the workers.
template <class Rules, uint32_t kBound, class Memory, class Group>
ONEHOP_HD void clear_previous(Memory& memory, const Group& group, const CommView& comm, const Turn& turn) {
  if (!Rules::kClears) return;
  const Pack empty = {{0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu}};
  Pack* slot = reinterpret_cast<Pack*>(comm.own) +
               comm.layout.region(WordKind::kSentinel, slot_before<Rules>(turn.slot), 0);
  for (uint32_t i = group.worker(); i < turn.previous_packs; i += group.workers()) {
    ONEHOP_UNROLL
    for (uint32_t source = 0; source < kBound; ++source)
      if (source < comm.ranks && source != comm.rank)
        memory.clear(slot + source * comm.layout.capacity + i, empty);
  }
}

/// Flag words are not emptied: an old flag is not the epoch. But it would be, billions of operations later
/// (README.md has the numbers), where no operation in between was long enough to write over it. So each
/// operation renews one pack per source, in rotation: no flag gets older than kSlots * capacity operations.
/// By one thread of the launch.
template <class Rules, class Memory>
ONEHOP_HD void renew_flags(Memory& memory, const CommView& comm, const Turn& turn) {
  if (!Rules::kClears) return;
  constexpr uint32_t kPacks = InboxLayout::expansion(WordKind::kFlag);
  const Pack renewed = {{0, turn.epoch, 0, turn.epoch}};
  Pack* line = reinterpret_cast<Pack*>(comm.own) + turn.sweep * kPacks +
               comm.layout.region(WordKind::kFlag, slot_before<Rules>(turn.slot), 0);
  for (uint32_t source = 0; source < comm.ranks; ++source, line += comm.layout.capacity * kPacks) {
    if (source == comm.rank) continue;
    for (uint32_t i = 0; i < kPacks; ++i) memory.clear(line + i, renewed);
  }
}

}  // namespace onehop
