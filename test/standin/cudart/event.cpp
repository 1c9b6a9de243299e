#include "test/standin/cudart/event.hpp"

#include <unordered_map>

#include "test/standin/cudart/capture.hpp"

namespace onehop::standin {
namespace {

// Never destroyed: the threads of streams outlive main().
std::unordered_map<cudaEvent_t, EventRef>& events() {
  static auto* all = new std::unordered_map<cudaEvent_t, EventRef>;
  return *all;
}

}  // namespace

EventRef create_event(Lock&, unsigned flags) {
  auto event = std::make_shared<CUevent_st>();
  event->flags = flags;
  events().emplace(event.get(), event);
  return event;
}

EventRef find_event(Lock&, cudaEvent_t handle) {
  const auto found = events().find(handle);
  return found != events().end() ? found->second : nullptr;
}

void destroy_event(Lock&, cudaEvent_t handle) {
  events().erase(handle);
}

cudaError_t record_event(Lock& lock, cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  const EventRef event = find_event(lock, handle);
  const StreamRef stream = find_stream(lock, stream_handle);
  if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
  const bool external = (flags & cudaEventRecordExternal) != 0;
  if (stream->capture != nullptr) {
    if (external) return add_node(*stream, {NodeKind::kRecord, nullptr, event});
    if (!stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
    event->capture = stream->capture;
    event->progress = stream->progress;
    event->point = nullptr;
    return cudaSuccess;
  }
  if (external) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_legacy(*stream)) return error;
  event->capture.reset();
  // Only an event that is asked for its time needs a moment of its own.
  const bool timed = (event->flags & cudaEventDisableTiming) == 0;
  event->point = timed ? enqueue(lock, stream, nullptr) : end_of_work(lock, stream);
  return cudaSuccess;
}

cudaError_t wait_event(Lock& lock, cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  const EventRef event = find_event(lock, handle);
  const StreamRef stream = find_stream(lock, stream_handle);
  if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
  const bool external = (flags & cudaEventWaitExternal) != 0;
  const std::shared_ptr<ActiveCapture> capture = event->capture.lock();
  if (stream->capture == nullptr) {
    if (external) return cudaErrorInvalidValue;
    if (capture != nullptr) return join_capture(stream, capture, event->progress);
    if (const cudaError_t error = check_legacy(*stream)) return error;
    if (is_pending(event->point)) enqueue(lock, stream, nullptr, {event->point});
    return cudaSuccess;
  }
  if (external) return add_node(*stream, {NodeKind::kWait, nullptr, event});
  if (!stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
  if (capture != nullptr) return join_capture(stream, capture, event->progress);
  if (event->point == nullptr) return cudaSuccess;  // never recorded
  stream->capture->valid = false;
  return cudaErrorStreamCaptureIsolation;
}

cudaError_t query_event(Lock& lock, cudaEvent_t handle) {
  const EventRef event = find_event(lock, handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (const std::shared_ptr<ActiveCapture> capture = event->capture.lock()) {
    capture->valid = false;
    return cudaErrorCapturedEvent;
  }
  return is_pending(event->point) ? cudaErrorNotReady : cudaSuccess;
}

}  // namespace onehop::standin

using namespace onehop::standin;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return report(cudaErrorInvalidValue);
  Lock lock;
  *event = create_event(lock, flags).get();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Lock lock;
  if (find_event(lock, event) == nullptr) return report(cudaErrorInvalidResourceHandle);
  destroy_event(lock, event);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  Lock lock;
  return report(record_event(lock, event, stream, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  Lock lock;
  return report(wait_event(lock, stream, event, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Lock lock;
  if (const cudaError_t error = check_unsafe_call(lock)) return report(error);
  return report(query_event(lock, event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Lock lock;
  if (const cudaError_t error = check_unsafe_call(lock)) return report(error);
  const cudaError_t state = query_event(lock, handle);
  if (state != cudaErrorNotReady) return report(state);
  wait_for(lock, PointRef(find_event(lock, handle)->point));
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return report(cudaErrorInvalidValue);
  Lock lock;
  for (const cudaEvent_t handle : {start, end}) {
    if (const cudaError_t state = query_event(lock, handle)) return report(state);
    const EventRef event = find_event(lock, handle);
    if (event->point == nullptr || (event->flags & cudaEventDisableTiming) != 0) {
      return report(cudaErrorInvalidResourceHandle);
    }
  }
  const std::chrono::duration<float, std::milli> elapsed =
      find_event(lock, end)->point->when - find_event(lock, start)->point->when;
  *milliseconds = elapsed.count();
  return cudaSuccess;
}

}  // extern "C"
