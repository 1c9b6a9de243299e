// Keeps a stream busy for a while, so that what is enqueued behind it starts without gaps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onehop::test {

cudaError_t delay(uint64_t nanoseconds, cudaStream_t stream);
cudaError_t empty_kernel(cudaStream_t stream);
/// May start before what is ahead of it on the stream has ended (programmatic dependent launch), and waits
/// there.
cudaError_t early_kernel(cudaStream_t stream);

}  // namespace onehop::test
