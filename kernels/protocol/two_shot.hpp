// Two-shot: each rank owns a slice of the data; everyone sends it theirs, the owner adds in rank order and
// sends the result to all. Two hops, and far fewer bytes than one-shot where there are many ranks.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/incoming.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// The slices of a two-shot: rank r owns packs r * share .. (r + 1) * share - 1, those of them that exist.
struct Slices {
  uint32_t packs, share;

  ONEHOP_HD Slices(uint32_t all, uint32_t ranks) : packs(all), share((all + ranks - 1) / ranks) {}
  ONEHOP_HD uint32_t pack(uint32_t owner, uint32_t j) const { return owner * share + j; }
  ONEHOP_HD bool has(uint32_t owner, uint32_t j) const { return pack(owner, j) < packs; }
  /// Owners whose slices have a pack j: the first so many.
  ONEHOP_HD uint32_t owners(uint32_t j) const { return (packs - j + share - 1) / share; }
};

/// As one_shot().
template <template <class> class Route, class Types, uint32_t kBound, class Words = typename Types::Words,
          class Rules = ProvenRules, Memory Mem, ThreadGroup Group>
ONEHOP_HD void two_shot(Mem& memory, const Group& group, const HopView& comm, const Operation& operation) {
  const auto input = Types::input(operation);
  const uint32_t packs = input.packs();
  if (packs == 0) return;

  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const Slices slices(packs, comm.ranks);
  const Route<Words> route(comm, turn, slices.share);
  const uint32_t begin = group.is_worker() ? group.worker() : slices.share, stride = group.workers();

  // First hop. All loads of a round are under way before its first store.
  for (uint32_t j = begin; j < slices.share; j += stride) {
    Pack pack[kBound];
    typename Route<Words>::Memo memo[kBound];
    ONEHOP_UNROLL
    for (uint32_t p = 0; p + 1 < kBound; ++p) {
      if (p + 1 >= comm.ranks || !slices.has(comm.rank_after(p), j)) continue;
      memo[p] = route.recall(memory, Area::kScatter, comm.rank_after(p), j);
      pack[p] = input.load(slices.pack(comm.rank_after(p), j));
    }
    ONEHOP_UNROLL
    for (uint32_t p = 0; p + 1 < kBound; ++p)
      if (p + 1 < comm.ranks && slices.has(comm.rank_after(p), j))
        route.scatter(memory, p, comm.rank_after(p), j, Words::sendable(pack[p]), memo[p]);
  }

  Incoming<kBound, Route<Words>> incoming(comm, route, comm.rank);
  const auto ask_for_own = [&](uint32_t j) {
    incoming.ask_for(memory, Area::kScatter, j, comm.ranks,
                     Words::sendable(input.load(slices.pack(comm.rank, j))));
  };
  if (begin < slices.share && slices.has(comm.rank, begin)) ask_for_own(begin);
  pass_turn<Rules, kBound>(memory, group, comm, turn, route.left(slices.share));

  // Second hop. What the owner keeps is what it sends.
  const auto output = Types::output(operation);
  Patience patience;
  for (uint32_t j = begin; j < slices.share && slices.has(comm.rank, j); j += stride) {
    if (j != begin) ask_for_own(j);
    const auto memo = route.recall(memory, Area::kAll, 0, j);
    if (!incoming.wait(memory, patience)) return;
    const Pack result = Words::sendable(incoming.reduce_all(Types::reduction(operation), comm.ranks));
    route.template send_to_all<kBound>(memory, j, result, memo);
    output.store(slices.pack(comm.rank, j), result);
  }
  for (uint32_t j = begin; j < slices.share; j += stride) {
    incoming.ask_for(memory, Area::kAll, j, slices.owners(j), Pack{});
    if (!incoming.wait(memory, patience)) return;
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r)
      if (r < slices.owners(j) && r != comm.rank) output.store(slices.pack(r, j), incoming.pack(r));
  }
}

}  // namespace onehop
