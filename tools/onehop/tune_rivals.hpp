// Settings of NCCL for the calls that it keeps under a plan: what `onehop tune` tries of them, and what it
// suggests. Pure functions, as for the plan itself.
#pragma once

#include <string>
#include <vector>

#include "tools/onehop/tune_steps.hpp"

namespace onehop::tune {

/// NCCL with these settings, beside NCCL as it is. The first round has everything, the second again, longer,
/// what was faster: the best of many is partly luck.
struct RivalStep {
  int round = 1;
  std::string settings;  ///< "NCCL_PROTO=LL NCCL_MAX_NCHANNELS=4"
  uint64_t bytes = 0;

  bool operator==(const RivalStep&) const = default;
};
std::string describe(const RivalStep&);

struct RivalMeasured : Times {
  RivalStep step;
};

/// Of the sizes that were tuned those that are NCCL's; and larger ones, but where ranks share a GPU, which
/// NCCL's kernels for them may not fit on at once.
std::vector<uint64_t> sizes_left_to_nccl(const FilePlan&, const std::vector<uint64_t>& tuned,
                                         bool share_gpus);

std::vector<RivalStep> first_rivals(const std::vector<std::string>& settings,
                                    const std::vector<uint64_t>& sizes);
/// Those of these steps that were clearly faster.
std::vector<RivalStep> second_rivals(const std::vector<RivalStep>& first, const std::vector<RivalMeasured>&);

/// A line for each of the settings that were clearly faster in both rounds, or one that says that none was.
std::string suggestions(const std::vector<RivalStep>& second, const std::vector<RivalMeasured>&);

}  // namespace onehop::tune
