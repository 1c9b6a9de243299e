// What `onehop tune` measures, what it has measured, and the plan that follows. Pure functions, so that a run
// that was interrupted goes on exactly where it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/geometry.hpp"
#include "plugin/plan_file/plan_file.hpp"

namespace onehop::tune {

/// One thing to measure. The first round has everything, the second the best of each size, longer.
struct Step {
  int round = 1;
  uint64_t bytes = 0;
  Method method = Method::kOneShot;
  Geometry most{0, 0};  ///< no blocks: as geometry_for() has it

  bool operator==(const Step&) const = default;
};
std::string describe(const Step&);

/// Of a call, in microseconds.
struct Times {
  double us = 0, nccl_us = 0;  ///< 0: dropped
  std::string dropped;         ///< why

  bool counts() const { return dropped.empty(); }
};

/// What became of a step.
struct Measured : Times {
  Step step;
};

/// What there is to choose from, the same in every run of one machine.
struct Choices {
  std::vector<uint64_t> sizes;  ///< ascending
  std::vector<Method> methods;
  std::vector<uint8_t> islands;  ///< of each rank
  uint32_t ranks = 2;
  uint32_t most_blocks = kMaxBlocks;
  double margin = 0.95;  ///< a method must take at most this part of NCCL's time
};

/// Every method with every geometry worth trying, at every size.
std::vector<Step> first_round(const Choices&);
/// From what the first round found.
std::vector<Step> second_round(const Choices&, const std::vector<Measured>&);

/// The fastest of the second round at each size, or NCCL. Between two sizes NCCL serves if it is best at
/// either; else the method of the larger one.
FilePlan best_plan(const Choices&, const std::vector<Measured>&);

}  // namespace onehop::tune
