// One process of the soak: ranks in threads of their own, and communicators of some of them that come and go.
#pragma once

#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <vector>

#include "test/gpu/life/soak_trace.hpp"

namespace onehop::test {

/// What all threads share. A slot holds a communicator of the ranks first .. first + ranks - 1.
struct Soak {
  struct Slot {
    uint32_t first = 0, ranks = 0;
    bool on = false;
    std::string reason;  ///< it is off
    std::vector<ncclComm_t> comms;
    std::vector<unsigned long long> hashes;  ///< of the results of random values, by rank
    ncclUniqueId id;

    bool has(uint32_t rank) const { return rank >= first && rank < first + ranks; }
    /// Several ranks on a GPU: NCCL's kernels must all fit on it at once.
    bool may_pass() const { return ranks <= 4; }
    bool is_used() const { return on || may_pass(); }
  };

  Soak(uint32_t its_ranks, uint32_t its_seed, size_t its_max_bytes, double its_seconds,
       std::string its_steady)
      : ranks(its_ranks),
        seed(its_seed),
        max_bytes(its_max_bytes),
        seconds(its_seconds),
        steady(std::move(its_steady)),
        barrier(static_cast<std::ptrdiff_t>(its_ranks)),
        steps(its_ranks),
        streams(its_ranks) {}

  const uint32_t ranks, seed;
  const size_t max_bytes;  ///< ONEHOP_MAX_BYTES
  const double seconds;
  const std::string
      steady;  ///< while a file of this name exists, no communicator comes or goes, nor does the process end
  std::barrier<> barrier;
  Slot slots[3];
  uint32_t slots_used = 3;
  bool stop = false, renew = false;  ///< rank 0's word, read behind the barrier
  std::atomic<uint64_t> progress{0}, calls{0}, replays{0}, communicators{0}, checked{0};
  std::vector<std::atomic<const char*>> steps;  ///< what each rank is doing
  /// Each rank's two, once it has started.
  std::vector<std::atomic<const std::array<TracedStream, 2>*>> streams;

  /// Where everyone is.
  void print() const {
    for (uint32_t r = 0; r < ranks; ++r) {
      std::printf("  rank %u: %s\n", r, steps[r].load());
      if (const auto* its = streams[r].load()) {
        (*its)[0].print("first stream");
        (*its)[1].print("second stream");
      }
    }
    for (uint32_t s = 0; s < std::size(slots); ++s)
      std::printf("  communicator %u: %u ranks from rank %u on, onehop %s\n", s, slots[s].ranks,
                  slots[s].first, slots[s].on ? "on" : "off");
    std::fflush(stdout);
  }
};

/// Runs one rank until the time is over. A wrong result ends the process.
void soak_rank(Soak&, uint32_t rank);

}  // namespace onehop::test
