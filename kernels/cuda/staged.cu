// Staged forms and islands: for machines on which the links, not the instructions, take the time.
#include "kernels/cuda/kernel.cuh"

namespace onehop {

Kernel one_shot_staged_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kOneShotStaged, kMaxHopRanks>(element, ranks);
}

Kernel two_shot_staged_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kTwoShotStaged, kMaxHopRanks>(element, ranks);
}

Kernel island_kernel(Element element, uint32_t ranks) {
  return sum_kernel_for<Method::kIslands, kMaxHopRanks>(element, ranks);
}

}  // namespace onehop
