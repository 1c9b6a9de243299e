// The kernel: protocol/all_reduce.hpp for one method. Which of its instantiations there are, and in which
// file:
//
// Sums of fp16, bf16 and fp32, which models are made of, have kernels of their own, in a file for each family
// of methods; those that a small call depends on are unrolled for up to 2, 4 and 8 ranks. Everything else
// shares one kernel per kind of words (untyped.cu), which looks at method, type and operator when it runs.
#pragma once

#include "kernels/cuda/cuda_group.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/geometry.hpp"
#include "kernels/protocol/all_reduce.hpp"

namespace onehop {

template <Method kMethod>
using ViewFor = std::conditional_t<kMethod == Method::kIslands, CommView, HopView>;

template <Method kMethod, class Types, uint32_t kBound>
__global__ void __launch_bounds__(kMaxWorkers + CudaGroup::kKeeperThreads)
    all_reduce_kernel(const __grid_constant__ Operation operation,
                      const __grid_constant__ ViewFor<kMethod> comm) {
  CudaMemory memory;
  all_reduce<kMethod, Types, kBound>(memory, CudaGroup{}, comm, operation);
}

template <class Function>
Kernel kernel_of(Function* function) {
  return reinterpret_cast<Kernel>(reinterpret_cast<void*>(function));
}

/// kSmallest: the smallest number of ranks that is unrolled for.
template <Method kMethod, class Types, uint32_t kSmallest>
Kernel kernel_for(uint32_t ranks) {
  if constexpr (kSmallest <= 2)
    if (ranks <= 2) return kernel_of(all_reduce_kernel<kMethod, Types, 2>);
  if constexpr (kSmallest <= 4)
    if (ranks <= 4) return kernel_of(all_reduce_kernel<kMethod, Types, 4>);
  return kernel_of(all_reduce_kernel<kMethod, Types, kMaxHopRanks>);
}

/// Null: this type has no kernel of its own.
template <Method kMethod, uint32_t kSmallest>
Kernel sum_kernel_for(Element element, uint32_t ranks) {
  switch (element) {
    case Element::kFloat16:
      return kernel_for<kMethod, Typed<Float16, Sum>, kSmallest>(ranks);
    case Element::kBfloat16:
      return kernel_for<kMethod, Typed<Bfloat16, Sum>, kSmallest>(ranks);
    case Element::kFloat32:
      return kernel_for<kMethod, Typed<Float32, Sum>, kSmallest>(ranks);
    default:
      return nullptr;
  }
}

}  // namespace onehop
