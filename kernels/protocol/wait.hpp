// Bounded waiting: a word that does not come must not hang the GPU.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/memory.hpp"

namespace onehop {

/// How long a thread goes on waiting. Most waits end before the first look at the stop word, which crosses
/// PCIe.
class Patience {
 public:
  static constexpr uint32_t kLooksPerCheck = 2048;  ///< about a millisecond

  /// After a look at which data of some ranks had not arrived: `missing` has a bit for each. True: leave, the
  /// communicator has failed.
  template <class Memory>
  ONEHOP_HD bool is_over(Memory& memory, const CommView& comm, uint32_t missing) {
    memory.pause();
    if (++looks_ % kLooksPerCheck != 0) return false;
    if (memory.stop(comm.control) != Stop::kNone) return true;
    if (comm.budget_ns == 0) return false;
    const uint64_t now = memory.now_ns();
    if (since_ == 0) since_ = now;  // not by `looks_`, which wraps within the default budget
    if (now - since_ < comm.budget_ns) return false;
    uint32_t rank = 0;
    while ((missing >> rank & 1) == 0) ++rank;
    memory.report(comm.control, Stop::kTimeout, rank);
    return true;
  }

 private:
  uint32_t looks_ = 0;
  uint64_t since_ = 0;
};

}  // namespace onehop
