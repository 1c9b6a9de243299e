// The two halves of a hop: one pack to every peer, and one pack from every peer.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/memory.hpp"
#include "kernels/protocol/wait.hpp"

namespace onehop {

/// Sends pack `index` of this rank's payload to every peer's inbox. Each rank begins with the peer after it,
/// so that not all write to the same inbox at once.
template <class Words, uint32_t kBound, class Mem>
ONEHOP_HD void send_to_peers(Mem& memory, const CommView& comm, const Turn& turn, uint32_t index,
                             const Pack& sendable) {
  const typename Words::Line line = Words::encode(sendable, turn.epoch);
  const uint32_t at = comm.layout.region(Words::kKind, turn.slot, comm.rank) + index * Words::kPacks;
  ONEHOP_UNROLL
  for (uint32_t step = 1; step < kBound; ++step) {
    if (step >= comm.ranks) break;
    const uint32_t peer = comm.rank + step < comm.ranks ? comm.rank + step : comm.rank + step - comm.ranks;
    Pack* to = reinterpret_cast<Pack*>(comm.inbox[peer]) + at;
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < Words::kPacks; ++k) memory.send(to + k, line.pack[k]);
  }
}

/// One pack of every peer, on its way into this rank's inbox.
template <class Words, uint32_t kBound>
class Incoming {
 public:
  ONEHOP_HD Incoming(const CommView& comm, const Turn& turn) : comm_(comm), turn_(turn) {}

  /// Takes a first look at pack `index` of all peers. The loads are only begun: wait() needs their results.
  template <class Mem>
  ONEHOP_HD void ask_for(Mem& memory, uint32_t index) {
    index_ = index;
    missing_ = ((1u << comm_.ranks) - 1) & ~(1u << comm_.rank);
    look(memory);
  }

  /// Waits until all have arrived. False: the communicator has failed.
  template <class Mem>
  ONEHOP_HD bool wait(Mem& memory, Patience& patience) {
    while (true) {
      ONEHOP_UNROLL
      for (uint32_t r = 0; r < kBound; ++r)
        if ((missing_ >> r & 1) && Words::arrived(line_[r], turn_.epoch)) missing_ &= ~(1u << r);
      if (missing_ == 0) return true;
      if (patience.is_over(memory, comm_, missing_)) return false;
      look(memory);
    }
  }

  /// The sum over all ranks in rank order, `own` being this rank's part.
  template <class Sum>
  ONEHOP_HD Pack sum_with(const Pack& own) const {
    Sum sum;
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r) {
      if (r >= comm_.ranks) break;
      const Pack pack = r == comm_.rank ? own : Words::decode(line_[r]);
      if (r == 0)
        sum.start(pack);
      else
        sum.add(pack);
    }
    return sum.result();
  }

 private:
  template <class Mem>
  ONEHOP_HD void look(Mem& memory) {
    const Pack* inbox = reinterpret_cast<const Pack*>(comm_.inbox[comm_.rank]);
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r) {
      if ((missing_ >> r & 1) == 0) continue;
      const Pack* at = inbox + comm_.layout.region(Words::kKind, turn_.slot, r) + index_ * Words::kPacks;
      ONEHOP_UNROLL
      for (uint32_t k = 0; k < Words::kPacks; ++k) line_[r].pack[k] = memory.receive(at + k);
    }
  }

  const CommView& comm_;
  const Turn& turn_;
  uint32_t index_ = 0;
  uint32_t missing_ = 0;  ///< a bit for each rank
  typename Words::Line line_[kBound];
};

}  // namespace onehop
