// Measuring at set-up: the plan's candidates and stock NCCL, on the same communicator, in graphs on the
// private stream, as a job's captured calls would run.
#pragma once

#include "plugin/setup/exchange.hpp"

namespace onehop {

/// Measures all pending members, and sets their plans: the pairs of ranks where islands may come of it, then
/// the rounds of measure/rounds.hpp. A time is that of the slowest rank. Of a member that could not be
/// measured, not_measured says why.
nccl::Result measure(const nccl::Functions&, Device&, Members&);

}  // namespace onehop
