// Copies between GPUs: whether the data arrives, and how fast.
#pragma once

#include <vector>

#include "tools/onehop/cuda_driver.hpp"
#include "tools/onehop/driver.hpp"

namespace onehop::tool {

/// Fills in what was measured. `ordinals[i]`: of GPU i for CUDA, -1 if it does not see that GPU.
void measure_pairs(const CudaDriver&, const std::vector<int>& ordinals, std::vector<PairFacts>& pairs);

}  // namespace onehop::tool
