// The threads of one launch. The last warp of each block keeps the turn and does nothing else: its fence
// (turn.hpp) would otherwise hold up the packs of the warp that it is in.
#pragma once

#include <cstdint>

namespace onehop {

class CudaGroup {
 public:
  static constexpr uint32_t kKeeperThreads = 32;

  __device__ uint32_t block() const { return blockIdx.x; }
  __device__ uint32_t blocks() const { return gridDim.x; }
  __device__ bool is_keeper() const { return threadIdx.x == workers_per_block(); }
  __device__ bool is_worker() const { return threadIdx.x < workers_per_block(); }
  __device__ uint32_t worker() const { return blockIdx.x * workers_per_block() + threadIdx.x; }
  __device__ uint32_t workers() const { return gridDim.x * workers_per_block(); }
  __device__ void sync() const { __syncthreads(); }

 private:
  __device__ static uint32_t workers_per_block() { return blockDim.x - kKeeperThreads; }
};

}  // namespace onehop
