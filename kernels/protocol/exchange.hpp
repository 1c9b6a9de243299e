// The two halves of a hop: one pack to every peer, and one pack from every peer.
//
// Few instructions stand here on purpose: a small call is a single warp's chain of dependent instructions.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/memory.hpp"
#include "kernels/protocol/wait.hpp"

namespace onehop {

/// Sends pack `index` of this rank's payload, as Words::sendable() made it, to every peer's inbox.
template <class Words, uint32_t kBound, class Mem>
ONEHOP_HD void send_to_peers(Mem& memory, const CommView& comm, const Turn& turn, uint32_t index,
                             const Pack& sendable) {
  const typename Words::Line line = Words::encode(sendable, turn.epoch);
  const uint32_t at = comm.layout.region(Words::kKind, turn.slot, comm.rank) + index * Words::kPacks;
  ONEHOP_UNROLL
  for (uint32_t p = 0; p + 1 < kBound; ++p) {
    if (p + 1 >= comm.ranks) continue;
    Pack* to = reinterpret_cast<Pack*>(comm.peers[p]) + at;
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < Words::kPacks; ++k) memory.send(to + k, line.pack[k]);
  }
}

/// One pack of every rank, on its way into this rank's inbox.
template <class Words, uint32_t kBound>
class Incoming {
 public:
  ONEHOP_HD Incoming(const CommView& comm, const Turn& turn)
      : comm_(comm),
        epoch_(turn.epoch),
        slot_(reinterpret_cast<const Pack*>(comm.own) + comm.layout.region(Words::kKind, turn.slot, 0)),
        stride_(comm.layout.region(Words::kKind, 0, 1) - comm.layout.region(Words::kKind, 0, 0)) {}

  /// Takes a first look at pack `index` of all peers; this rank's own is `sendable`. The loads are only
  /// begun: wait() needs their results.
  template <class Mem>
  ONEHOP_HD void ask_for(Mem& memory, uint32_t index, const Pack& sendable) {
    from_ = slot_ + index * Words::kPacks;
    // Ranks that do not exist pass for arrived, and reduce() leaves them out.
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r)
      if (!is_peer(r)) line_[r] = Words::encode(sendable, epoch_);
    look(memory);
  }

  /// Waits until all have arrived. False: the communicator has failed.
  template <class Mem>
  ONEHOP_HD bool wait(Mem& memory, Patience& patience) {
    while (true) {
      uint32_t seen = 0;
      ONEHOP_UNROLL
      for (uint32_t r = 0; r < kBound; ++r) seen = Words::look(seen, line_[r], epoch_);
      if (Words::complete(seen)) return true;
      if (patience.is_tried(memory) && patience.is_over(memory, comm_, missing())) return false;
      look(memory);
    }
  }

  /// The reduction over all ranks in rank order.
  template <class Reduction>
  ONEHOP_HD Pack reduce() const {
    Reduction reduction;
    reduction.start(Words::decode(line_[0]));
    ONEHOP_UNROLL
    for (uint32_t r = 1; r < kBound; ++r)
      if (r < comm_.ranks) reduction.add(Words::decode(line_[r]));
    return reduction.result(comm_.ranks);
  }

 private:
  ONEHOP_HD bool is_peer(uint32_t r) const { return r < comm_.ranks && r != comm_.rank; }

  /// Every peer's line again, arrived or not: to tell them apart would take longer.
  template <class Mem>
  ONEHOP_HD void look(Mem& memory) {
    ONEHOP_UNROLL
    for (uint32_t r = 0; r < kBound; ++r) {
      if (!is_peer(r)) continue;
      ONEHOP_UNROLL
      for (uint32_t k = 0; k < Words::kPacks; ++k) line_[r].pack[k] = memory.receive(from_ + r * stride_ + k);
    }
  }

  /// The first rank whose line has not arrived.
  ONEHOP_HD uint32_t missing() const {
    uint32_t first = kBound;
    ONEHOP_UNROLL
    for (uint32_t r = kBound; r-- > 0;)
      if (!arrived<Words>(line_[r], epoch_)) first = r;
    return first;
  }

  const CommView& comm_;
  const uint32_t epoch_;
  const Pack* const slot_;  ///< of rank 0's region
  const uint32_t stride_;   ///< packs from one source's region to the next
  const Pack* from_ = nullptr;
  typename Words::Line line_[kBound];
};

}  // namespace onehop
