// The stream functions of the CUDA runtime.

#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/devices.hpp"
#include "test/standin/cudart/stream.hpp"

using namespace onehop::standin;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~cudaStreamNonBlocking) != 0) return report(cudaErrorInvalidValue);
  const StreamKind kind =
      (flags & cudaStreamNonBlocking) != 0 ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  Lock lock;
  *stream = create_stream(lock, kind, flags, priority).get();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return report(cudaErrorInvalidResourceHandle);
  }
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  destroy_stream(lock, stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_wait(*stream)) return report(error);
  const PointRef end = end_of_work(lock, stream);
  if (is_pending(end)) wait_for(lock, end);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_wait(*stream)) return report(error);
  return report(is_pending(end_of_work(lock, stream)) ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() {
  Lock lock;
  if (const cudaError_t error = check_device_wait(lock, current_device())) return report(error);
  drain_device(lock, current_device());
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr || flags == nullptr) return report(cudaErrorInvalidResourceHandle);
  *flags = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr || priority == nullptr) return report(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr || id == nullptr) return report(cudaErrorInvalidResourceHandle);
  *id = stream->id;
  return cudaSuccess;
}

#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr || device == nullptr) return report(cudaErrorInvalidResourceHandle);
  *device = stream->device;
  return cudaSuccess;
}
#endif

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (function == nullptr) return report(cudaErrorInvalidValue);
  return report(issue(stream, [=] { function(data); }));
}

}  // extern "C"

/// For the stand-in libnccl: enqueues `run(data)` and calls `drop(data)` once nothing can run it any more, be
/// that the stream or a graph. `drop` must not call back into this library.
extern "C" cudaError_t onehop_standin_launch(cudaStream_t stream, void (*run)(void*), void (*drop)(void*),
                                             void* data) {
  const std::shared_ptr<void> owner(data, drop);
  return report(issue(stream, [owner, run] { run(owner.get()); }));
}
