// Measuring at set-up: the plan's candidates and stock NCCL, on the same communicator, in graphs on the
// private stream, as a job's captured calls would run.
#pragma once

#include <string>
#include <vector>

#include "plugin/measure/timings.hpp"
#include "plugin/setup/exchange.hpp"

namespace onehop {

/// How thoroughly.
struct Effort {
  std::vector<uint64_t> sizes;  ///< bytes of a call, ascending; the last is the plan's largest
  uint32_t first_samples = 3, samples = 5;
  uint32_t calls = 4;  ///< in a sample
  size_t leaders = 3;  ///< candidates that are measured at every size
};
Effort effort_for(MeasureChoice, uint64_t max_bytes);

/// Measures all pending members, and sets their plans. Two rounds: first every candidate at a few sizes, then
/// the leaders and NCCL at every size; a time is the median of its samples on each rank, and the largest of
/// the ranks. Of a member that could not be measured, not_measured says why.
nccl::Result measure(const nccl::Functions&, Device&, Members&);

}  // namespace onehop
