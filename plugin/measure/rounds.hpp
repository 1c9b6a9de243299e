// What is measured at set-up, and in which order: pure functions of what all ranks know. First every
// candidate at a few sizes, then the leaders and stock NCCL at every size, with more samples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/measure/timings.hpp"
#include "plugin/plan.hpp"
#include "plugin/settings.hpp"

namespace onehop {

/// How thoroughly.
struct Effort {
  std::vector<uint64_t> sizes;  ///< bytes of a call, ascending; the last is the plan's largest
  uint32_t first_samples = 3, samples = 9;
  uint32_t calls = 3;  ///< in a sample, of small calls
  size_t leaders = 3;  ///< candidates that are measured at every size

  /// Calls in a sample: of large ones, which take long enough to be timed by themselves, fewer.
  uint32_t calls_of(uint64_t bytes) const;
};
Effort effort_for(MeasureChoice, uint64_t max_bytes);

/// One time: a method, or NCCL, at a size.
struct Trial {
  std::optional<Method> method;
  uint64_t bytes;
};

std::vector<Trial> first_trials(const Plan&, const Effort&);
/// `timings` holds what the first came to.
std::vector<Trial> second_trials(const Timings& timings, const Effort&);

/// What was known of this trial before is forgotten.
void note(Timings&, const Trial&, const Time&);
/// Leaves out what has not been measured at every size.
void keep_complete_rows(Timings&);

}  // namespace onehop
