#include "kernels/cuda/kernel.cuh"

namespace onehop {

// Between two ranks a second hop only takes time.
Kernel two_shot_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kTwoShot, 4>(element, ranks);
}

}  // namespace onehop
