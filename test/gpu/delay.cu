#include "test/gpu/delay.hpp"

namespace onehop::test {
namespace {

__device__ uint64_t now() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void delay_kernel(uint64_t nanoseconds) {
  for (const uint64_t start = now(); now() - start < nanoseconds;) {
  }
}

__global__ void nothing() {}

}  // namespace

cudaError_t delay(uint64_t nanoseconds, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t empty_kernel(cudaStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace onehop::test
