// The probe: before any of the job's data goes over it, staging memory is tried with the real kernels. First
// all ranks at once, then every pair by itself, in both directions, with the words that the plan will use and
// patterns that change; each result is checked by the rank that received the words. Peer access that is
// advertised and broken (dropped, changed, mirrored or late writes) ends here, within the deadline, and the
// next kind of staging is tried. Nothing about it is ever cached as good.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/device.hpp"
#include "plugin/plan.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop {

/// Longest wait of a probe's kernel for a peer's words. All ranks have just exchanged a record, so a peer is
/// late only if GPUs are shared or the link is broken.
inline constexpr uint64_t kProbeDeadlineNs = 4'000'000'000;

/// The pair that `rank` belongs to in one round of ranks - 1 (or ranks, if odd); -1: it has none. Every pair
/// meets once, and each rank is in one pair at a time.
int probe_partner(uint32_t rank, uint32_t ranks, uint32_t round);
constexpr uint32_t probe_rounds(uint32_t ranks) {
  return ranks % 2 == 0 ? ranks - 1 : ranks;
}

class Probe {
 public:
  Probe(Device& device, Staging& staging, const Plan& plan)
      : device_(device), staging_(staging), plan_(plan) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe();

  /// Enqueues all of it. The device is current; every rank must have come this far.
  Status start(Stream);
  /// Once the stream is idle: what came.
  Status verdict() const;

 private:
  struct Case {
    CommView view;
    Operation operation;
    std::vector<uint32_t> ranks;  ///< of the communicator, in the order of the view's
    uint32_t number;              ///< makes its pattern different; the same on all its ranks
  };
  void add_cases(const CommView& view, const std::vector<uint32_t>& ranks, Method method, uint32_t packs,
                 uint32_t& number);

  Device& device_;
  Staging& staging_;
  const Plan& plan_;
  std::vector<Case> cases_;
  size_t words_ = 0;  ///< of input, and as many of output
  void* pinned_ = nullptr;
};

}  // namespace onehop
