// One-shot push: send my data to every peer's inbox, receive the peers' data, add in rank order. One hop.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/element.hpp"
#include "kernels/protocol/exchange.hpp"
#include "kernels/protocol/payload.hpp"
#include "kernels/protocol/reduction.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// Runs one all-reduce of `comm.ranks` <= kBound ranks; called by every thread of the group.
///
/// Leaves early, with the result undefined, only when the communicator has failed (comm.control->stop).
template <class Element, class Operator, uint32_t kBound, class Words = typename Element::Words,
          class Rules = ProvenRules, Memory Mem, ThreadGroup Group>
ONEHOP_HD void one_shot(Mem& memory, const Group& group, const CommView& comm, const Operation& operation) {
  using Input = Payload<Element::kBytes, const unsigned char>;
  using Output = Payload<Element::kBytes, unsigned char>;
  const auto count = static_cast<uint32_t>(operation.count);
  const uint32_t packs = Input::packs(count);
  // Nothing to send means nothing to wait for, and a rank that waits for nobody could run any number of
  // operations ahead. So an empty operation has no turn.
  if (packs == 0) return;

  // Where a launch has a pack or less for each worker, as most have, the loops below run once, and the pack
  // stays in registers. The turn is asked for first and needed last: its latency and that of the pack
  // overlap.
  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const Input input(static_cast<const unsigned char*>(operation.send), count);
  const uint32_t begin = group.worker(), stride = group.workers();
  const bool works = group.is_worker() && begin < packs;
  Pack first = {};
  if (works) {
    first = Words::sendable(input.load(begin));
    Pack own = first;
    for (uint32_t i = begin;;) {
      send_to_peers<Words, kBound>(memory, comm, turn, i, own);
      if ((i += stride) >= packs) break;
      own = Words::sendable(input.load(i));
    }
  }

  // The time of the hop is spent on what must be done anyway.
  Incoming<Words, kBound> incoming(comm, turn);
  if (works) incoming.ask_for(memory, begin, first);
  group.sync();  // every thread of the block has read the turn
  if (group.is_keeper()) {
    const uint32_t left_behind = Words::kKind == WordKind::kSentinel ? packs : 0;
    keep_turn<Rules>(memory, group, comm, turn_after<Rules>(turn, left_behind, comm.layout.capacity));
    if (group.block() == 0) renew_flags<Rules>(memory, comm, turn);
  }
  if (group.is_worker()) clear_previous<Rules, kBound>(memory, group, comm, turn);
  if (!works) return;

  const Output output(static_cast<unsigned char*>(operation.receive), count);
  Patience patience;
  for (uint32_t i = begin;;) {
    if (!incoming.wait(memory, patience)) return;
    output.store(i, incoming.template reduce<PackReduction<Element, Operator>>());
    if ((i += stride) >= packs) break;
    incoming.ask_for(memory, i, Words::sendable(input.load(i)));
  }
}

}  // namespace onehop
