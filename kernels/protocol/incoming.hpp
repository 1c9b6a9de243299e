// What comes in over a hop: one pack from each of several ranks.
//
// Few instructions stand here on purpose: a small call is a single warp's chain of dependent instructions.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/push.hpp"
#include "kernels/protocol/wait.hpp"

namespace onehop {

/// One pack of each of up to kBound sources, on its way to this rank. Sources are ranks, or what
/// `Route::rank_of(k)` takes for k.
template <uint32_t kBound, class Route>
class Incoming {
 public:
  /// `self`: the source that is this rank, which nothing is received from.
  ONEHOP_HD Incoming(const HopView& comm, const Route& route, uint32_t self)
      : comm_(comm), route_(route), self_(self) {}

  /// Takes a first look at the packs i of sources 0 .. count - 1; the own one is `sendable`. The loads are
  /// only begun: wait() needs their results.
  template <class Mem>
  ONEHOP_HD void ask_for(Mem& memory, Area area, uint32_t i, uint32_t count, const Pack& sendable) {
    place_ = route_.place_of(area, i);
    count_ = count;
    // Sources that do not exist pass for arrived, and nobody uses them.
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kBound; ++k)
      arrival_[k] = is_awaited(k) ? route_.look_for(memory, k, place_) : route_.arrived_as(sendable);
  }

  /// Waits until all have arrived. False: the communicator has failed.
  template <class Mem>
  ONEHOP_HD bool wait(Mem& memory, Patience& patience) {
    constexpr uint32_t kLooksPerStrongOne = 16;
    for (uint32_t looks = 1;; ++looks) {
      uint32_t seen = 0;
      ONEHOP_UNROLL
      for (uint32_t k = 0; k < kBound; ++k) seen = route_.judge(seen, arrival_[k]);
      if (Route::complete(seen)) break;
      if (patience.is_tried(memory) && patience.is_over(memory, comm_, missing())) return false;
      look_again(memory, Route::kFar && looks % kLooksPerStrongOne == 0);
    }
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kBound; ++k)
      pack_[k] = is_awaited(k) ? route_.take(memory, k, place_, arrival_[k]) : Route::own(arrival_[k]);
    return true;
  }

  ONEHOP_HD Pack pack(uint32_t k) const { return pack_[k]; }

  /// Adds sources first .. end - 1 in that order, the first of them with start() if the reduction is new.
  template <class Reduction>
  ONEHOP_HD void reduce(Reduction& reduction, uint32_t first, uint32_t end, bool is_new) const {
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kBound; ++k) {
      if (k < first || k >= end) continue;
      if (is_new && k == first)
        reduction.start(pack_[k]);
      else
        reduction.add(pack_[k]);
    }
  }

  /// The reduction of all sources, of which there are `ranks`.
  template <class Reduction>
  ONEHOP_HD Pack reduce_all(Reduction reduction, uint32_t ranks) const {
    reduction.start(pack_[0]);
    ONEHOP_UNROLL
    for (uint32_t k = 1; k < kBound; ++k)
      if (k < ranks) reduction.add(pack_[k]);
    return reduction.result(ranks);
  }

 private:
  ONEHOP_HD bool is_awaited(uint32_t k) const { return k < count_ && k != self_; }
  ONEHOP_HD bool has_arrived(uint32_t k) const { return Route::complete(route_.judge(0, arrival_[k])); }

  /// Near: at every pack again, arrived or not; to tell them apart would take longer. Far: only at those that
  /// have not arrived, for each look takes bandwidth from what it looks for.
  template <class Mem>
  ONEHOP_HD void look_again(Mem& memory, bool strong) {
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kBound; ++k) {
      if (!is_awaited(k)) continue;
      if (Route::kFar && has_arrived(k)) continue;
      route_.look_again(memory, k, place_, strong, arrival_[k]);
    }
  }

  /// The first rank whose pack has not arrived.
  ONEHOP_HD uint32_t missing() const {
    uint32_t first = 0;
    ONEHOP_UNROLL
    for (uint32_t k = kBound; k-- > 0;)
      if (!has_arrived(k)) first = k;
    return route_.rank_of(first);
  }

  const HopView& comm_;
  const Route& route_;
  const uint32_t self_;
  typename Route::Place place_ = {};
  uint32_t count_ = 0;
  typename Route::Arrival arrival_[kBound];
  Pack pack_[kBound];
};

}  // namespace onehop
