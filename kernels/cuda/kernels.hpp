// Which kernel serves an operation.
#pragma once

#include "kernels/operation.hpp"

namespace onehop {

/// A __global__ function. Its parameters are an Operation and a HopView or a CommView, which begins with one:
/// both can be launched with a CommView.
using Kernel = const void*;

// Sums of fp16, bf16 and fp32; null for other types.
Kernel one_shot_kernel(Element, uint32_t ranks);
Kernel two_shot_kernel(Element, uint32_t ranks);
Kernel one_shot_pull_kernel(Element, uint32_t ranks);
Kernel two_shot_pull_kernel(Element, uint32_t ranks);
Kernel one_shot_staged_kernel(Element, uint32_t ranks);
Kernel two_shot_staged_kernel(Element, uint32_t ranks);
Kernel island_kernel(Element, uint32_t ranks);

/// Every type and operator.
Kernel untyped_kernel(Element);

}  // namespace onehop
