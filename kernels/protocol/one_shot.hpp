// One-shot: everyone gets everyone's data, by push or by pull, and adds in rank order. One hop.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/incoming.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// Runs one all-reduce of `comm.ranks` <= kBound ranks; called by every thread of the group. `Types` is Typed
/// or Untyped.
///
/// Leaves early, with the result undefined, only when the communicator has failed (comm.control->stop).
template <template <class> class Route, class Types, uint32_t kBound, class Words = typename Types::Words,
          class Rules = ProvenRules, Memory Mem, ThreadGroup Group>
ONEHOP_HD void one_shot(Mem& memory, const Group& group, const HopView& comm, const Operation& operation) {
  const auto input = Types::input(operation);
  const uint32_t packs = input.packs();
  // Nothing to send means nothing to wait for, and a rank that waits for nobody could run any number of
  // operations ahead. So an empty operation has no turn.
  if (packs == 0) return;

  // Where a launch has a pack or less for each worker, as most have, the loops below run once, and the pack
  // stays in registers. The turn is asked for first and needed last: its latency and that of the pack
  // overlap.
  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const uint32_t begin = group.worker(), stride = group.workers();
  const bool works = group.is_worker() && begin < packs;
  Pack first = {};
  if (works) {
    // One block, and the route made in it: so what it needs of the parameters is fetched while the pack is on
    // its way, and not after.
    const auto early = Route<Words>::recall_all_early(memory, comm, begin);
    first = Words::sendable(input.load(begin));
    const Route<Words> route(comm, turn);
    Pack own = first;
    auto memo = route.pick(early);
    for (uint32_t i = begin;;) {
      route.template send_to_all<kBound>(memory, i, own, memo);
      if ((i += stride) >= packs) break;
      memo = route.recall(memory, Area::kAll, 0, i);
      own = Words::sendable(input.load(i));
    }
  }

  const Route<Words> route(comm, turn);
  Incoming<kBound, Route<Words>> incoming(comm, route, comm.rank);
  if (works) incoming.ask_for(memory, Area::kAll, begin, comm.ranks, first);
  pass_turn<Rules, kBound>(memory, group, comm, turn, route.left(packs));
  if (!works) return;

  const auto output = Types::output(operation);
  Patience patience;
  for (uint32_t i = begin;;) {
    if (!incoming.wait(memory, patience)) return;
    output.store(i, incoming.reduce_all(Types::reduction(operation), comm.ranks));
    if ((i += stride) >= packs) break;
    incoming.ask_for(memory, Area::kAll, i, comm.ranks, Words::sendable(input.load(i)));
  }
}

}  // namespace onehop
