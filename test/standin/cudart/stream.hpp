// Streams: each a queue of work, served by a thread of its own from the first work on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "test/standin/cudart/runtime.hpp"

namespace onehop::standin {

struct ActiveCapture;
using Task = std::function<void()>;

/// How far each stream of a capture had come: which of its operations something depends on.
using Progress = std::map<uint64_t, uint64_t>;

struct Work {
  std::vector<PointRef> after;
  Task task;
  PointRef done;
};

enum class StreamKind { kNonBlocking, kBlocking, kLegacy };

}  // namespace onehop::standin

/// The opaque type behind cudaStream_t.
struct CUstream_st {
  uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  onehop::standin::StreamKind kind = onehop::standin::StreamKind::kNonBlocking;

  std::deque<onehop::standin::Work> queue;
  std::condition_variable wake;    ///< the queue has work, or the stream is destroyed
  onehop::standin::PointRef last;  ///< when the newest work is done; null before the first
  bool has_thread = false;
  bool destroyed = false;

  std::shared_ptr<onehop::standin::ActiveCapture> capture;  ///< null while not capturing
  onehop::standin::Progress progress;                       ///< only while capturing
};

namespace onehop::standin {

using StreamRef = std::shared_ptr<CUstream_st>;

/// The stream behind a handle, the default ones of the current device included. Null: there is no such
/// stream.
StreamRef find_stream(Lock& lock, cudaStream_t handle);
StreamRef create_stream(Lock& lock, StreamKind kind, unsigned flags, int priority);
/// Work already enqueued still runs.
void destroy_stream(Lock& lock, const StreamRef& stream);

/// Enqueues work as it is: the stream is not capturing. Adds the order that the legacy default stream
/// implies.
PointRef enqueue(Lock& lock, const StreamRef& stream, Task task, std::vector<PointRef> after = {});
/// When all that the stream has been given is done; null or reached: it is.
PointRef end_of_work(Lock& lock, const StreamRef& stream);
/// Returns when all work of the device that was enqueued before the call is done.
void drain_device(Lock& lock, int device);

/// Enqueues work, or adds it to the graph when the stream is capturing. `point`, if given, receives when
/// eager work is done.
cudaError_t issue(Lock& lock, cudaStream_t handle, Task task, PointRef* point = nullptr);
cudaError_t issue(cudaStream_t handle, Task task, PointRef* point = nullptr);

}  // namespace onehop::standin
