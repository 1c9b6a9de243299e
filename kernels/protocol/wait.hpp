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

  /// After a look at words that had not all arrived: whether it is time for is_over().
  template <class Memory>
  ONEHOP_HD bool is_tried(Memory& memory) {
    memory.pause();
    return ++looks_ % kLooksPerCheck == 0;
  }

  /// True: leave, the communicator has failed. `missing`: a rank whose data has not arrived.
  template <class Memory>
  ONEHOP_HD bool is_over(Memory& memory, const HopView& comm, uint32_t missing) {
    if (memory.stop(comm.control) != Stop::kNone) return true;
    if (comm.budget_ns == 0) return false;
    const uint64_t now = memory.now_ns();
    if (since_ == 0) since_ = now;  // not by `looks_`, which wraps within the default budget
    if (now - since_ < comm.budget_ns) return false;
    memory.report(comm.control, Stop::kTimeout, missing);
    return true;
  }

 private:
  uint32_t looks_ = 0;
  uint64_t since_ = 0;
};

}  // namespace onehop
