// The one-shot kernels: protocol/one_shot.hpp for every element type and operator.
//
// Few instantiations are enough: sums of the types that models are made of are unrolled for up to 2, 4 or 8
// ranks, everything else for 8 only; and sums and products of signed integers are those of unsigned ones
// (dispatch.hpp).
#include "kernels/cuda/cuda_group.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/launch.hpp"
#include "kernels/protocol/dispatch.hpp"
#include "kernels/protocol/one_shot.hpp"

namespace onehop {
namespace {

template <class Type, class Operator, uint32_t kBound>
__global__ void __launch_bounds__(kMaxWorkers + CudaGroup::kKeeperThreads)
    one_shot_kernel(const __grid_constant__ Operation operation, const __grid_constant__ CommView comm) {
  CudaMemory memory;
  one_shot<Type, Operator, kBound>(memory, CudaGroup{}, comm, operation);
}

using Kernel = void (*)(Operation, CommView);

/// Finds the kernel for a number of ranks.
struct FindKernel {
  uint32_t ranks;

  template <class Type, class Operator>
  Kernel operator()() const {
    if constexpr (std::is_same_v<Operator, Sum> && std::is_same_v<typename Type::Words, SentinelWords> &&
                  Type::kBytes >= 2) {
      if (ranks <= 2) return one_shot_kernel<Type, Operator, 2>;
      if (ranks <= 4) return one_shot_kernel<Type, Operator, 4>;
    }
    return one_shot_kernel<Type, Operator, kMaxRanks>;
  }
};

}  // namespace

cudaError_t launch_one_shot(const CommView& comm, const Operation& operation, const Geometry& geometry,
                            cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = geometry.blocks;
  config.blockDim = geometry.workers + CudaGroup::kKeeperThreads;
  config.stream = stream;
  const Kernel kernel = dispatch(operation.element, operation.reduction, FindKernel{comm.ranks});
  return cudaLaunchKernelEx(&config, kernel, operation, comm);
}

cudaError_t load_cuda_kernels() {
  for (uint32_t element = 0; element < kElements; ++element) {
    for (uint32_t reduction = 0; reduction < kReductions; ++reduction) {
      for (const uint32_t ranks : {2u, 4u, kMaxRanks}) {
        const Kernel kernel =
            dispatch(static_cast<Element>(element), static_cast<Reduction>(reduction), FindKernel{ranks});
        cudaFuncAttributes attributes;
        const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
        if (error != cudaSuccess) return error;
      }
    }
  }
  return cudaSuccess;
}

}  // namespace onehop
