// What all parts of the stand-in for libcudart share: one lock, moments in the work of a stream, and the last
// error.
//
// One lock guards every stream, event, capture and graph. Work itself runs without it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace onehop::standin {

/// The one lock, held.
class Lock : public std::unique_lock<std::mutex> {
 public:
  Lock();
};

/// A moment in the work of a stream: reached once, and then for ever.
struct Point {
  bool reached = false;
  std::chrono::steady_clock::time_point when;
  std::condition_variable changed;
};
using PointRef = std::shared_ptr<Point>;

void wait_for(Lock& lock, const PointRef& point);
void reach(Lock& lock, const PointRef& point);
inline bool is_pending(const PointRef& point) {
  return point != nullptr && !point->reached;
}

/// Remembers an error for cudaGetLastError and hands it on.
cudaError_t report(cudaError_t error);

}  // namespace onehop::standin
