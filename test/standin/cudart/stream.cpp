#include "test/standin/cudart/stream.hpp"

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/devices.hpp"

namespace onehop::standin {
namespace {

struct Streams {
  uint64_t next_id = 1;
  std::unordered_map<cudaStream_t, StreamRef> all;
  std::map<int, StreamRef> legacy;  ///< by device
  /// Unfinished work of streams that are gone, by device: device-wide waits and the legacy stream still see
  /// it.
  std::map<int, std::vector<PointRef>> orphans;
};

// Never destroyed: the threads of streams outlive main().
Streams& streams() {
  static auto* all = new Streams;
  return *all;
}

/// The calling thread's cudaStreamPerThread of each device.
struct PerThread {
  std::map<int, StreamRef> streams;
  ~PerThread() {
    Lock lock;
    for (const auto& entry : streams) destroy_stream(lock, entry.second);
  }
};
thread_local PerThread per_thread;

void serve(const StreamRef& stream) {
  Lock lock;
  while (true) {
    stream->wake.wait(lock, [&] { return !stream->queue.empty() || stream->destroyed; });
    if (stream->queue.empty()) return;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    for (const PointRef& point : work.after) wait_for(lock, point);
    if (work.task) {
      lock.unlock();
      work.task();
      work.task = nullptr;  // what it owns may need the lock to go
      lock.lock();
    }
    reach(lock, work.done);
  }
}

/// What the legacy default stream's rule makes new work of this stream wait for.
std::vector<PointRef> implied(Lock&, const CUstream_st& stream) {
  std::vector<PointRef> after;
  if (stream.kind == StreamKind::kBlocking) {
    const auto legacy = streams().legacy.find(stream.device);
    if (legacy != streams().legacy.end() && is_pending(legacy->second->last)) {
      after.push_back(legacy->second->last);
    }
  } else if (stream.kind == StreamKind::kLegacy) {
    for (const auto& entry : streams().all) {
      const CUstream_st& other = *entry.second;
      if (other.kind == StreamKind::kBlocking && other.device == stream.device && is_pending(other.last)) {
        after.push_back(other.last);
      }
    }
    for (const PointRef& point : streams().orphans[stream.device]) {
      if (is_pending(point)) after.push_back(point);
    }
  }
  return after;
}

}  // namespace

StreamRef create_stream(Lock&, StreamKind kind, unsigned flags, int priority) {
  auto stream = std::make_shared<CUstream_st>();
  stream->id = streams().next_id++;
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  stream->kind = kind;
  streams().all.emplace(stream.get(), stream);
  return stream;
}

void destroy_stream(Lock&, const StreamRef& stream) {
  leave_capture(*stream);
  auto& orphans = streams().orphans[stream->device];
  orphans.erase(std::remove_if(orphans.begin(), orphans.end(), [](const PointRef& p) { return p->reached; }),
                orphans.end());
  if (is_pending(stream->last)) orphans.push_back(stream->last);
  stream->destroyed = true;
  stream->wake.notify_all();
  streams().all.erase(stream.get());
}

StreamRef find_stream(Lock& lock, cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    StreamRef& stream = streams().legacy[current_device()];
    if (stream == nullptr) stream = create_stream(lock, StreamKind::kLegacy, cudaStreamDefault, 0);
    return stream;
  }
  if (handle == cudaStreamPerThread) {
    StreamRef& stream = per_thread.streams[current_device()];
    if (stream == nullptr) stream = create_stream(lock, StreamKind::kBlocking, cudaStreamDefault, 0);
    return stream;
  }
  const auto found = streams().all.find(handle);
  return found != streams().all.end() ? found->second : nullptr;
}

PointRef enqueue(Lock& lock, const StreamRef& stream, Task task, std::vector<PointRef> after) {
  for (PointRef& point : implied(lock, *stream)) after.push_back(std::move(point));
  after.erase(std::remove_if(after.begin(), after.end(), [](const PointRef& p) { return !is_pending(p); }),
              after.end());
  stream->last = std::make_shared<Point>();
  stream->queue.push_back({std::move(after), std::move(task), stream->last});
  if (!stream->has_thread) {
    stream->has_thread = true;
    std::thread([stream] { serve(stream); }).detach();
  }
  stream->wake.notify_all();
  return stream->last;
}

PointRef end_of_work(Lock& lock, const StreamRef& stream) {
  if (implied(lock, *stream).empty()) return stream->last;
  return enqueue(lock, stream, nullptr);
}

void drain_device(Lock& lock, int device) {
  std::vector<PointRef> points;
  for (const auto& entry : streams().all) {
    if (entry.second->device == device && is_pending(entry.second->last))
      points.push_back(entry.second->last);
  }
  for (const PointRef& point : streams().orphans[device]) points.push_back(point);
  for (const PointRef& point : points) wait_for(lock, point);
}

cudaError_t issue(Lock& lock, cudaStream_t handle, Task task, PointRef* point) {
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr) return add_node(*stream, {NodeKind::kTask, std::move(task), nullptr});
  if (const cudaError_t error = check_legacy(*stream)) return error;
  const PointRef done = enqueue(lock, stream, std::move(task));
  if (point != nullptr) *point = done;
  return cudaSuccess;
}

cudaError_t issue(cudaStream_t handle, Task task, PointRef* point) {
  Lock lock;
  return issue(lock, handle, std::move(task), point);
}

}  // namespace onehop::standin
