// Islands: groups of ranks with fast links inside and slow ones between. Each rank owns a slice of its
// island's data. Mates send it theirs; the sum of a pack then goes from island to island, each adding its own
// ranks, in rank order and unrounded; the last rounds and sends the result to the owners in the other
// islands, who send it to their mates. Across, each pack travels once on its way up and once back, whatever
// the number of ranks.
//
// Islands that summed apart and exchanged the sums would save hops, but the order of the additions would
// depend on the partition: results would differ from those of the other methods, and from machine to machine.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/incoming.hpp"
#include "kernels/protocol/push.hpp"
#include "kernels/protocol/turn.hpp"

namespace onehop {

/// Where each word of one operation lies in the region of its source. Places count from the beginning of the
/// slice that the word belongs to: data of the receiver's slice; results and sums of the sender's.
struct IslandPlaces {
  uint32_t share, wide;

  ONEHOP_HD uint32_t data(uint32_t j) const { return j; }
  ONEHOP_HD uint32_t result(uint32_t j) const { return share + j; }
  /// Pack w of the sum that has passed run t.
  ONEHOP_HD uint32_t sum(uint32_t t, uint32_t j, uint32_t w) const {
    return (2 + t * wide) * share + j * wide + w;
  }
  ONEHOP_HD uint32_t all(uint32_t runs) const { return (2 + (runs - 1) * wide) * share; }
};

/// The mates of a rank as sources: member k of its island.
template <class Words>
class FromMates : public Push<Words> {
 public:
  using typename Push<Words>::Arrival;
  using typename Push<Words>::Place;

  ONEHOP_HD FromMates(const Push<Words>& route, const Islands& islands, uint32_t island)
      : Push<Words>(route), islands_(islands), island_(island) {}

  ONEHOP_HD uint32_t rank_of(uint32_t k) const { return islands_.member(island_, k); }
  template <class Mem>
  ONEHOP_HD Arrival look_for(Mem& memory, uint32_t k, Place p) const {
    return Push<Words>::look_for(memory, rank_of(k), p);
  }
  template <class Mem>
  ONEHOP_HD void look_again(Mem& memory, uint32_t k, Place p, bool /*strong*/, Arrival& arrival) const {
    arrival = look_for(memory, k, p);
  }

 private:
  const Islands& islands_;
  const uint32_t island_;
};

/// As one_shot(), for up to kMaxRanks ranks in islands of up to kBound.
template <class Types, uint32_t kBound, class Words = typename Types::Words, class Rules = ProvenRules,
          Memory Mem, ThreadGroup Group>
ONEHOP_HD void island_reduce(Mem& memory, const Group& group, const CommView& comm,
                             const Operation& operation) {
  const auto input = Types::input(operation);
  const uint32_t packs = input.packs();
  if (packs == 0) return;

  const Turn turn = memory.load_turn(&state_of<Rules>(comm, group.block())->turn);
  const Islands& islands = comm.islands;
  const uint32_t home = islands.island[comm.rank], size = islands.size(home),
                 place = islands.place(comm.rank);
  const uint32_t last_run = islands.runs - 1u, last_island = islands.island[islands.run[last_run]];
  const Slice own = slice_of(packs, size, place);
  auto reduction = Types::reduction(operation);
  const IslandPlaces places{(packs + islands.smallest - 1) / islands.smallest, reduction.wide_packs()};
  const Push<Words> route(comm, turn);
  const uint32_t first = group.worker(), stride = group.workers();
  const bool works = group.is_worker();

  const auto send = [&](uint32_t to, uint32_t at, const Pack& pack) {
    route.send_into(memory, comm.staging(to), at, Words::sendable(pack));
  };
  const auto send_to_mates = [&](uint32_t j, const Pack& result) {
    for (uint32_t k = 1; k < size; ++k)
      send(islands.member(home, (place + k) % size), places.result(j), result);
  };
  Patience patience;
  const auto wait_for = [&](uint32_t source, uint32_t at, Pack& pack) {
    return wait_for_line<Words>(memory, comm, patience, source, route.from(source) + at * Words::kPacks,
                                turn.epoch, pack);
  };
  /// The rank that has pack i in its slice, of the island of run t; and where the pack lies in that slice.
  const auto owner_in = [&](uint32_t t, uint32_t i, uint32_t& j) {
    const uint32_t island = islands.island[islands.run[t]], of = islands.size(island),
                   k = owner_of(packs, of, i);
    j = i - slice_of(packs, of, k).begin;
    return islands.member(island, k);
  };

  // Inside: to each mate its slice.
  for (uint32_t k = 1; works && k < size; ++k) {
    const uint32_t mate = (place + k) % size;
    const Slice slice = slice_of(packs, size, mate);
    for (uint32_t i = slice.begin + first; i < slice.end; i += stride)
      send(islands.member(home, mate), places.data(i - slice.begin), input.load(i));
  }
  pass_turn<Rules, kMaxRanks>(memory, group, comm, turn, route.left(places.all(islands.runs)));
  if (!works) return;

  // From island to island.
  const auto output = Types::output(operation);
  const FromMates<Words> mates(route, islands, home);
  Incoming<kBound, FromMates<Words>> incoming(comm, mates, place);
  for (uint32_t i = own.begin + first; i < own.end; i += stride) {
    const uint32_t j = i - own.begin;
    incoming.ask_for(memory, Area::kScatter, places.data(j), size, Words::sendable(input.load(i)));
    uint32_t added = 0;  // mates, in rank order
    for (uint32_t t = 0; t <= last_run; ++t) {
      if (islands.island[islands.run[t]] != home) continue;
      if (t > 0) {
        uint32_t at;
        const uint32_t source = owner_in(t - 1, i, at);
        for (uint32_t w = 0; w < places.wide; ++w) {
          Pack sum;
          if (!wait_for(source, places.sum(t - 1, at, w), sum)) return;
          reduction.set_wide(w, sum);
        }
      }
      if (!incoming.wait(memory, patience)) return;
      const uint32_t more = static_cast<uint32_t>(islands.run[t + 1]) - static_cast<uint32_t>(islands.run[t]);
      incoming.reduce(reduction, added, added + more, t == 0);
      added += more;
      if (t == last_run) {
        const Pack result = Words::sendable(reduction.result(comm.ranks));
        for (uint32_t island = 0; island < islands.count; ++island) {
          if (island == home) continue;
          const uint32_t k = owner_of(packs, islands.size(island), i);
          send(islands.member(island, k), places.result(j), result);
        }
        send_to_mates(j, result);
        output.store(i, result);
      } else {
        uint32_t unused;
        const uint32_t next = owner_in(t + 1, i, unused);
        for (uint32_t w = 0; w < places.wide; ++w) send(next, places.sum(t, j, w), reduction.wide(w));
      }
    }
  }

  // Back, and inside.
  if (home != last_island) {
    for (uint32_t i = own.begin + first; i < own.end; i += stride) {
      uint32_t at;
      const uint32_t source = owner_in(last_run, i, at);
      Pack result;
      if (!wait_for(source, places.result(at), result)) return;
      send_to_mates(i - own.begin, result);
      output.store(i, result);
    }
  }
  for (uint32_t k = 1; k < size; ++k) {
    const uint32_t mate = (place + k) % size;
    const Slice slice = slice_of(packs, size, mate);
    for (uint32_t i = slice.begin + first; i < slice.end; i += stride) {
      Pack result;
      if (!wait_for(islands.member(home, mate), places.result(i - slice.begin), result)) return;
      output.store(i, result);
    }
  }
}

}  // namespace onehop
