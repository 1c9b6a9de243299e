// The one-shot kernels: protocol/one_shot.hpp for each element type, unrolled for up to 2, 4 or 8 ranks.
#include "kernels/cuda/cuda_group.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/launch.hpp"
#include "kernels/protocol/one_shot.hpp"

namespace onehop {
namespace {

template <class Element, uint32_t kBound>
__global__ void __launch_bounds__(kMaxWorkers + CudaGroup::kKeeperThreads)
    one_shot_kernel(const __grid_constant__ Operation operation, const __grid_constant__ CommView comm) {
  CudaMemory memory;
  one_shot<Element, kBound>(memory, CudaGroup{}, comm, operation);
}

using Kernel = void (*)(Operation, CommView);

constexpr uint32_t kBounds = 3;
constexpr uint32_t bound_index(uint32_t ranks) {
  return ranks <= 2 ? 0 : ranks <= 4 ? 1 : 2;
}

template <class Element>
struct Row {
  Kernel kernel[kBounds] = {one_shot_kernel<Element, 2>, one_shot_kernel<Element, 4>,
                            one_shot_kernel<Element, 8>};
};

constexpr uint32_t kElements = 6;

/// Rows in the order of enum Element.
struct Table {
  Row<Float32> float32;
  Row<Float16> float16;
  Row<Bfloat16> bfloat16;
  Row<Float64> float64;
  Row<Integer32> integer32;
  Row<Integer64> integer64;

  Kernel find(Element element, uint32_t ranks) const {
    const uint32_t bound = bound_index(ranks);
    switch (element) {
      case Element::kFloat32:
        return float32.kernel[bound];
      case Element::kFloat16:
        return float16.kernel[bound];
      case Element::kBfloat16:
        return bfloat16.kernel[bound];
      case Element::kFloat64:
        return float64.kernel[bound];
      case Element::kInteger32:
        return integer32.kernel[bound];
      case Element::kInteger64:
        return integer64.kernel[bound];
    }
    return nullptr;
  }
};

const Table& table() {
  static const Table kernels;
  return kernels;
}

}  // namespace

cudaError_t launch_one_shot(const CommView& comm, const Operation& operation, const Geometry& geometry,
                            cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = geometry.blocks;
  config.blockDim = geometry.workers + CudaGroup::kKeeperThreads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, table().find(operation.element, comm.ranks), operation, comm);
}

cudaError_t load_cuda_kernels() {
  for (uint32_t element = 0; element < kElements; ++element) {
    for (uint32_t ranks : {2u, 4u, 8u}) {
      cudaFuncAttributes attributes;
      const auto* kernel = reinterpret_cast<const void*>(table().find(static_cast<Element>(element), ranks));
      if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess)
        return error;
    }
  }
  return cudaSuccess;
}

}  // namespace onehop
