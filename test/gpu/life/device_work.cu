#include "test/gpu/life/device_work.hpp"

namespace onehop::test {
namespace {

constexpr uint32_t kThreads = 256, kMostBlocks = 32;

__device__ void spin(uint64_t nanoseconds) {
  uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

__device__ uint32_t value_of(Round round) {
  return round == nullptr ? 0 : *static_cast<const volatile uint32_t*>(round);
}

__device__ size_t first_index() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ void overwrite(unsigned char* data, size_t bytes) {
  for (size_t i = first_index(); i < bytes; i += gridDim.x * blockDim.x) data[i] = kGuardByte;
}

__global__ void fill_kernel(Pattern p, Buffers b, Round round, uint64_t delay_ns) {
  if (delay_ns > 0) {
    if (threadIdx.x == 0) spin(delay_ns);
    __syncthreads();
  }
  const uint32_t size = size_of(p.type);
  auto* out = static_cast<unsigned char*>(b.out);
  // In place only the guards: two threads must not write the same byte.
  if (b.in != b.out) overwrite(out, b.received * size);
  if (blockIdx.x == 0 && threadIdx.x < kGuard) {
    out[-1 - static_cast<int>(threadIdx.x)] = kGuardByte;
    out[b.received * size + threadIdx.x] = kGuardByte;
  }
  const uint32_t now = value_of(round);
  for (size_t i = first_index(); i < b.sent; i += gridDim.x * blockDim.x)
    store_element(b.in, size, i, sent_bits(p, p.rank, now, i));
}

__device__ void note_wrong(Tally* tally, uint64_t index, uint64_t got, uint64_t wanted, uint64_t tag) {
  if (atomicAdd(&tally->wrong, 1ull) != 0) return;
  tally->index = index;
  tally->got = got;
  tally->wanted = wanted;
  tally->tag = tag;
}

__global__ void check_kernel(Pattern p, Buffers b, Holds holds, size_t block, size_t first, Round round,
                             Tally* tally, uint64_t tag) {
  const uint32_t size = size_of(p.type);
  if (b.in != b.out) overwrite(static_cast<unsigned char*>(b.in), b.sent * size);
  const auto* out = static_cast<const unsigned char*>(b.out);
  if (blockIdx.x == 0 && threadIdx.x < kGuard) {
    const unsigned char before = out[-1 - static_cast<int>(threadIdx.x)],
                        behind = out[b.received * size + threadIdx.x];
    if (before != kGuardByte) note_wrong(tally, ~0ull - threadIdx.x, before, kGuardByte, tag);
    if (behind != kGuardByte) note_wrong(tally, b.received + threadIdx.x, behind, kGuardByte, tag);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0)
    atomicAdd(&tally->checked, static_cast<unsigned long long>(b.received));
  const uint32_t now = value_of(round);
  unsigned long long hash = 0;
  for (size_t i = first_index(); i < b.received; i += gridDim.x * blockDim.x) {
    const uint64_t got = load_element(out, size, i);
    if (p.random) {
      hash += mixed(got + mixed(i + tag * 0x9E3779B97F4A7C15u));
      continue;
    }
    const uint64_t wanted = held_bits(p, holds, block, now, first + i);
    if (got != wanted) note_wrong(tally, i, got, wanted, tag);
  }
  if (p.random) atomicAdd(&tally->hash, hash);
}

__global__ void advance_kernel(uint32_t* round) {
  ++*round;
}

__global__ void note_kernel(uint32_t* place, uint32_t number) {
  *static_cast<volatile uint32_t*>(place) = number;
}

__global__ void wait_kernel(uint64_t nanoseconds) {
  spin(nanoseconds);
}

__global__ void count_down_kernel(cudaGraphConditionalHandle handle, uint32_t* left) {
  cudaGraphSetConditional(handle, --*left > 0 ? 1 : 0);
}

uint32_t blocks_for(size_t elements) {
  const size_t wanted = (elements + 4 * kThreads - 1) / (4 * kThreads);
  return static_cast<uint32_t>(wanted < 1 ? 1 : wanted < kMostBlocks ? wanted : kMostBlocks);
}

}  // namespace

cudaError_t fill(const Pattern& p, const Buffers& b, Round round, uint64_t delay_ns, cudaStream_t stream) {
  fill_kernel<<<blocks_for(b.sent), kThreads, 0, stream>>>(p, b, round, delay_ns);
  return cudaPeekAtLastError();
}

cudaError_t check(const Pattern& p, const Buffers& b, Holds holds, size_t block, size_t first, Round round,
                  Tally* tally, uint64_t tag, cudaStream_t stream) {
  check_kernel<<<blocks_for(b.received), kThreads, 0, stream>>>(p, b, holds, block, first, round, tally, tag);
  return cudaPeekAtLastError();
}

cudaError_t advance(uint32_t* round, cudaStream_t stream) {
  advance_kernel<<<1, 1, 0, stream>>>(round);
  return cudaPeekAtLastError();
}

cudaError_t note(uint32_t* place, uint32_t number, cudaStream_t stream) {
  note_kernel<<<1, 1, 0, stream>>>(place, number);
  return cudaPeekAtLastError();
}

cudaError_t wait_ns(uint64_t nanoseconds, cudaStream_t stream) {
  wait_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaPeekAtLastError();
}

cudaError_t count_down(unsigned long long conditional, uint32_t* left, cudaStream_t stream) {
  count_down_kernel<<<1, 1, 0, stream>>>(conditional, left);
  return cudaPeekAtLastError();
}

}  // namespace onehop::test
