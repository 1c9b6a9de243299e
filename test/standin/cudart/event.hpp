// Events: the most recent record in a stream, in a launch of a graph, or in a capture.
#pragma once

#include <memory>

#include "test/standin/cudart/stream.hpp"

/// The opaque type behind cudaEvent_t.
struct CUevent_st {
  unsigned flags = 0;
  onehop::standin::PointRef point;                        ///< null: never recorded, or recorded in a capture
  std::weak_ptr<onehop::standin::ActiveCapture> capture;  ///< the capture that it was recorded in
  double modelled_us = 0;                                 ///< of a timer, on a modelled fabric
  onehop::standin::Progress progress;                     ///< and what a wait for it depends on there
};

namespace onehop::standin {

using EventRef = std::shared_ptr<CUevent_st>;

EventRef create_event(Lock& lock, unsigned flags);
EventRef find_event(Lock& lock, cudaEvent_t handle);
void destroy_event(Lock& lock, cudaEvent_t handle);

/// As cudaEventRecordWithFlags and cudaStreamWaitEvent.
cudaError_t record_event(Lock& lock, cudaEvent_t handle, cudaStream_t stream, unsigned flags);
cudaError_t wait_event(Lock& lock, cudaStream_t stream, cudaEvent_t handle, unsigned flags);
/// cudaSuccess, cudaErrorNotReady, or why it may not be asked. The rules of capture are the caller's.
cudaError_t query_event(Lock& lock, cudaEvent_t handle);

}  // namespace onehop::standin
