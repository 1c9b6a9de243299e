#include "kernels/cuda/cuda_group.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"

namespace onehop {
namespace {

Kernel sum_kernel(Method method, Element element, uint32_t ranks) {
  switch (method) {
    case Method::kOneShot:
      return one_shot_kernel(element, ranks);
    case Method::kTwoShot:
      return two_shot_kernel(element, ranks);
    case Method::kOneShotStaged:
      return one_shot_staged_kernel(element, ranks);
    case Method::kTwoShotStaged:
      return two_shot_staged_kernel(element, ranks);
    case Method::kOneShotPull:
      return one_shot_pull_kernel(element, ranks);
    case Method::kTwoShotPull:
      return two_shot_pull_kernel(element, ranks);
    case Method::kIslands:
      return island_kernel(element, ranks);
  }
  return nullptr;
}

Kernel kernel_of(const Operation& operation, uint32_t ranks) {
  if (operation.reduction == Reduction::kSum)
    if (const Kernel kernel = sum_kernel(operation.method, operation.element, ranks)) return kernel;
  return untyped_kernel(operation.element);
}

}  // namespace

cudaError_t launch(const CommView& comm, const Operation& operation, const Geometry& geometry,
                   cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = geometry.blocks;
  config.blockDim = geometry.workers + CudaGroup::kKeeperThreads;
  config.stream = stream;
  void* parameters[] = {const_cast<Operation*>(&operation), const_cast<CommView*>(&comm)};
  return cudaLaunchKernelExC(&config, kernel_of(operation, comm.ranks), parameters);
}

cudaError_t load_cuda_kernels() {
  const auto load = [](Kernel kernel) {
    cudaFuncAttributes attributes;
    return kernel == nullptr ? cudaSuccess : cudaFuncGetAttributes(&attributes, kernel);
  };
  for (uint32_t e = 0; e < kElements; ++e) {
    const auto element = static_cast<Element>(e);
    if (const cudaError_t error = load(untyped_kernel(element)); error != cudaSuccess) return error;
    for (uint32_t method = 0; method < kMethods; ++method) {
      for (const uint32_t ranks : {2u, 4u, kMaxHopRanks}) {
        const cudaError_t error = load(sum_kernel(static_cast<Method>(method), element, ranks));
        if (error != cudaSuccess) return error;
      }
    }
  }
  return cudaSuccess;
}

}  // namespace onehop
