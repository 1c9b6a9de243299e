// What a rank remembers between two operations of a communicator. It lives in device memory and is advanced
// by the kernel, so the replay of a graph needs nothing from the host.
#pragma once

#include <cstdint>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/layout.hpp"

namespace onehop {

/// Where the next operation stands. One 16-byte load reads all of it.
struct alignas(16) Turn {
  uint32_t epoch = 0;  ///< low 32 bits of the number of operations before this one, plus one
  uint32_t slot = 0;   ///< epoch (without the wrap) modulo kInboxSlots
  uint32_t left = 0;   ///< packs that the previous operation left in each region of the inbox, to be emptied
  uint32_t reserved = 0;
};
static_assert(sizeof(Turn) == 16);

/// Device memory, one per rank; zeroed at set-up except for the first turn.
struct State {
  Turn turn;
  alignas(128) uint32_t arrivals = 0;  ///< blocks of the running launch that have read `turn`
};

/// The first turn of a communicator. Epoch 0 is never used: a flag word of fresh, zeroed memory carries flag
/// 0.
ONEHOP_HD constexpr Turn first_turn() {
  return Turn{1, 1, 0, 0};
}

/// Why the kernels of a communicator leave without a result.
enum class Stop : uint32_t {
  kNone = 0,
  kAbort = 1,    ///< written by the host: ncclCommAbort, ncclCommRevoke, ncclCommShrink with abort
  kTimeout = 2,  ///< written by a kernel: a peer's data did not come within the budget
};

/// Pinned host memory, one per rank: all that the host and a running kernel tell each other. Once `stop` is
/// not kNone the communicator has failed: kernels that wait leave, and those that follow leave as soon as
/// they would wait.
struct Control {
  uint32_t stop = 0;          ///< a Stop
  uint32_t missing_rank = 0;  ///< with kTimeout: the rank that was waited for
};

}  // namespace onehop
