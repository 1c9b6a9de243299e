// Copies and fills.

#include <cstring>

#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/memory.hpp"

using namespace onehop::standin;

namespace {

cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream, bool wait) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  // As CUDA: memory that is not pinned may be reused as soon as the call returns.
  wait = wait || !find_memory(to) || !find_memory(from);
  Lock lock;
  PointRef done;
  const cudaError_t error = issue(
      lock, stream, [=] { std::memmove(to, from, bytes); }, &done);
  if (error == cudaSuccess && wait && done != nullptr) wait_for(lock, done);
  return error;
}

cudaError_t fill(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr) return cudaErrorInvalidValue;
  return issue(stream, [=] { std::memset(to, value, bytes); });
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return report(copy(to, from, bytes, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return report(copy(to, from, bytes, stream, false));
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return report(copy(to, from, bytes, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return report(copy(to, from, bytes, stream, false));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return report(fill(to, value, bytes, cudaStreamLegacy));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return report(fill(to, value, bytes, stream));
}

}  // extern "C"
