// What the programs put on a stream around their calls: values in, results checked where they are. On a GPU
// kernels (device_work.cu), on the stand-in functions of the host (device_work_standin.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include "test/gpu/life/pattern.hpp"

namespace onehop::test {

/// Bytes before and behind every result that must stay what they were.
inline constexpr size_t kGuard = 64;
inline constexpr unsigned char kGuardByte = 0xA5;

/// What the checks of one rank found, in device memory.
struct Tally {
  unsigned long long checked, wrong;           ///< elements; a wrong guard byte counts as one
  unsigned long long hash;                     ///< of all results of random values, equal on all ranks
  unsigned long long index, got, wanted, tag;  ///< of the first wrong one
};

/// The buffers of one call: `out` has kGuard bytes more on both sides; in place: in == out.
struct Buffers {
  void *in = nullptr, *out = nullptr;
  size_t sent = 0, received = 0;  ///< elements
};

/// A counter that the graph itself advances makes the values of each replay new; null: 0.
using Round = const uint32_t*;

/// Waits on the GPU, then makes `out` and its guards kGuardByte and fills `in`.
cudaError_t fill(const Pattern&, const Buffers&, Round, uint64_t delay_ns, cudaStream_t);

/// Overwrites `in` where it is not `out`, and then checks `out`, from element `first` of the whole on.
cudaError_t check(const Pattern&, const Buffers&, Holds, size_t block, size_t first, Round, Tally*,
                  uint64_t tag, cudaStream_t);

cudaError_t advance(uint32_t* round, cudaStream_t);

/// Writes a number to host memory that the GPU sees.
cudaError_t note(uint32_t* place, uint32_t number, cudaStream_t);

/// Keeps the stream busy.
cudaError_t wait_ns(uint64_t nanoseconds, cudaStream_t);

/// One iteration of a `while` node less to do: sets its condition.
cudaError_t count_down(unsigned long long conditional, uint32_t* left, cudaStream_t);

}  // namespace onehop::test
