// The staged forms of the push methods: in pass p each rank sends only to the rank p + 1 places after it, and
// goes on when it has what the rank p + 1 places before it sent. So each GPU has one stream out and one in.
// On machines whose root complex loses speed when everyone writes to everyone, this is what keeps larger
// messages fast.
#pragma once

#include <cstdint>

#include "kernels/protocol/incoming.hpp"
#include "kernels/protocol/push.hpp"
#include "kernels/protocol/two_shot.hpp"

namespace onehop {

/// As one_shot().
template <class Types, uint32_t kBound, class Words = typename Types::Words, class Rules = ProvenRules,
          Memory Mem, ThreadGroup Group>
ONEHOP_HD void one_shot_staged(Mem& memory, const Group& group, const HopView& comm,
                               const Operation& operation) {
  const auto input = Types::input(operation);
  const uint32_t packs = input.packs();
  if (packs == 0) return;

  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const Push<Words> route(comm, turn);
  const uint32_t begin = group.is_worker() ? group.worker() : packs, stride = group.workers();
  Patience patience;
  for (uint32_t p = 0; p + 1 < comm.ranks; ++p) {
    for (uint32_t i = begin; i < packs; i += stride)
      route.send_to(memory, p, i, Words::sendable(input.load(i)));
    if (p == 0) pass_turn<Rules, kBound>(memory, group, comm, turn, route.left(packs));
    const uint32_t source = comm.rank_before(p);
    for (uint32_t i = begin; i < packs; i += stride) {
      Pack unused;
      if (!wait_for_line<Words>(memory, comm, patience, source, route.from(source) + i * Words::kPacks,
                                turn.epoch, unused))
        return;
    }
  }

  // All is here; the sum needs it in rank order.
  const auto output = Types::output(operation);
  Incoming<kBound, Push<Words>> incoming(comm, route, comm.rank);
  for (uint32_t i = begin; i < packs; i += stride) {
    incoming.ask_for(memory, Area::kAll, i, comm.ranks, Words::sendable(input.load(i)));
    if (!incoming.wait(memory, patience)) return;
    output.store(i, incoming.reduce_all(Types::reduction(operation), comm.ranks));
  }
}

/// As one_shot().
template <class Types, uint32_t kBound, class Words = typename Types::Words, class Rules = ProvenRules,
          Memory Mem, ThreadGroup Group>
ONEHOP_HD void two_shot_staged(Mem& memory, const Group& group, const HopView& comm,
                               const Operation& operation) {
  const auto input = Types::input(operation);
  const uint32_t packs = input.packs();
  if (packs == 0) return;

  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const Slices slices(packs, comm.ranks);
  const Push<Words> route(comm, turn, slices.share);
  const uint32_t begin = group.is_worker() ? group.worker() : slices.share, stride = group.workers();
  const auto line_of = [&](uint32_t source, Area area, uint32_t j) {
    return route.from(source) + route.place(area, j) * Words::kPacks;
  };

  Patience patience;
  for (uint32_t p = 0; p + 1 < comm.ranks; ++p) {
    const uint32_t owner = comm.rank_after(p), source = comm.rank_before(p);
    for (uint32_t j = begin; j < slices.share && slices.has(owner, j); j += stride)
      route.scatter(memory, p, owner, j, Words::sendable(input.load(slices.pack(owner, j))));
    if (p == 0) pass_turn<Rules, kBound>(memory, group, comm, turn, route.left(slices.share));
    for (uint32_t j = begin; j < slices.share && slices.has(comm.rank, j); j += stride) {
      Pack unused;
      if (!wait_for_line<Words>(memory, comm, patience, source, line_of(source, Area::kScatter, j),
                                turn.epoch, unused))
        return;
    }
  }

  const auto output = Types::output(operation);
  Incoming<kBound, Push<Words>> incoming(comm, route, comm.rank);
  for (uint32_t j = begin; j < slices.share && slices.has(comm.rank, j); j += stride) {
    const uint32_t own = slices.pack(comm.rank, j);
    incoming.ask_for(memory, Area::kScatter, j, comm.ranks, Words::sendable(input.load(own)));
    if (!incoming.wait(memory, patience)) return;
    output.store(own, Words::sendable(incoming.reduce_all(Types::reduction(operation), comm.ranks)));
  }

  for (uint32_t p = 0; p + 1 < comm.ranks; ++p) {
    const uint32_t source = comm.rank_before(p);
    for (uint32_t j = begin; j < slices.share && slices.has(comm.rank, j); j += stride)
      route.send_to(memory, p, route.place(Area::kAll, j), output.load(slices.pack(comm.rank, j)));
    for (uint32_t j = begin; j < slices.share && slices.has(source, j); j += stride) {
      Pack result;
      if (!wait_for_line<Words>(memory, comm, patience, source, line_of(source, Area::kAll, j), turn.epoch,
                                result))
        return;
      output.store(slices.pack(source, j), result);
    }
  }
}

}  // namespace onehop
