#include "kernels/cuda/kernel.cuh"

namespace onehop {

Kernel one_shot_pull_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kOneShotPull, 2>(element, ranks);
}

Kernel two_shot_pull_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kTwoShotPull, 4>(element, ranks);
}

}  // namespace onehop
