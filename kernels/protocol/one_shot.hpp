// One-shot push: send my data to every peer's inbox, receive the peers' data, add in rank order. One hop.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/element.hpp"
#include "kernels/protocol/memory.hpp"
#include "kernels/protocol/payload.hpp"
#include "kernels/protocol/turn.hpp"
#include "kernels/protocol/wait.hpp"

namespace onehop {

template <class Words, class Memory>
ONEHOP_HD typename Words::Line receive_line(Memory& memory, const Pack* region, uint32_t index) {
  typename Words::Line line;
  ONEHOP_UNROLL
  for (uint32_t i = 0; i < Words::kPacks; ++i)
    line.pack[i] = memory.receive(region + index * Words::kPacks + i);
  return line;
}

/// Runs one all-reduce of `comm.ranks` <= kBound ranks; called by every thread of the group.
///
/// Leaves early, with the result undefined, only when the communicator has failed (comm.control->stop).
template <class Element, uint32_t kBound, class Words = typename Element::Words, class Rules = ProvenRules,
          Memory Mem, ThreadGroup Group>
ONEHOP_HD void one_shot(Mem& memory, const Group& group, const CommView& comm, const Operation& operation) {
  using Input = Payload<Element::kBytes, const unsigned char>;
  using Output = Payload<Element::kBytes, unsigned char>;
  const Input input(static_cast<const unsigned char*>(operation.send), operation.count);
  const Output output(static_cast<unsigned char*>(operation.receive), operation.count);
  const uint32_t packs = Input::packs(operation.count);
  // Nothing to send means nothing to wait for, and a rank that waits for nobody could run any number of
  // operations ahead. So an empty operation has no turn.
  if (packs == 0) return;
  const uint32_t stride = group.workers();
  const bool works = group.is_worker() && group.worker() < packs;

  // The first pack is loaded before the turn, so that the two latencies overlap, and is kept for the sum.
  const Pack first = works ? Words::sendable(input.load(group.worker())) : Pack{};
  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);

  if (works) {
    for (uint32_t i = group.worker(); i < packs; i += stride) {
      const Pack payload = i == group.worker() ? first : Words::sendable(input.load(i));
      const typename Words::Line line = Words::encode(payload, turn.epoch);
      const size_t at = comm.layout.region(Words::kKind, turn.slot, comm.rank) + size_t{i} * Words::kPacks;
      // Each rank begins with the peer after it, so that not all write to the same inbox at once.
      ONEHOP_UNROLL
      for (uint32_t step = 1; step < kBound; ++step) {
        if (step >= comm.ranks) break;
        const uint32_t peer =
            comm.rank + step < comm.ranks ? comm.rank + step : comm.rank + step - comm.ranks;
        Pack* to = reinterpret_cast<Pack*>(comm.inbox[peer]) + at;
        ONEHOP_UNROLL
        for (uint32_t k = 0; k < Words::kPacks; ++k) memory.send(to + k, line.pack[k]);
      }
    }
  }

  // From here on the time of the hop is spent on what must be done anyway.
  group.sync();  // every thread of the block has read the turn
  if (group.is_keeper()) {
    const uint32_t left_behind = Words::kKind == WordKind::kSentinel ? packs : 0;
    keep_turn<Rules>(memory, group, comm, turn_after<Rules>(turn, left_behind, comm.layout.capacity));
  }
  if (group.is_worker()) clear_previous<Rules>(memory, group, comm, turn);
  if (!works) return;

  const Pack* inbox = reinterpret_cast<const Pack*>(comm.inbox[comm.rank]);
  Patience patience;
  for (uint32_t i = group.worker(); i < packs; i += stride) {
    typename Words::Line line[kBound];
    uint32_t missing = 0;
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r) {
      if (r < comm.ranks && r != comm.rank) {
        line[r] = receive_line<Words>(memory, inbox + comm.layout.region(Words::kKind, turn.slot, r), i);
        missing |= 1u << r;
      }
    }
    const Pack own = i == group.worker() ? first : Words::sendable(input.load(i));
    while (true) {
      ONEHOP_UNROLL
      for (uint32_t r = 0; r < kBound; ++r)
        if ((missing >> r & 1) && Words::arrived(line[r], turn.epoch)) missing &= ~(1u << r);
      if (missing == 0) break;
      uint32_t waited_for = 0;
      while (!(missing >> waited_for & 1)) ++waited_for;
      if (patience.is_over(memory, comm, waited_for)) return;
      ONEHOP_UNROLL
      for (uint32_t r = 0; r < kBound; ++r)
        if (missing >> r & 1)
          line[r] = receive_line<Words>(memory, inbox + comm.layout.region(Words::kKind, turn.slot, r), i);
    }
    PackSum<Element> sum;
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r) {
      if (r >= comm.ranks) break;
      const Pack pack = r == comm.rank ? own : Words::decode(line[r]);
      if (r == 0)
        sum.start(pack);
      else
        sum.add(pack);
    }
    output.store(i, sum.result());
  }
}

}  // namespace onehop
