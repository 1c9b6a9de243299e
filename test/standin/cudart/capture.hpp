// Captures of streams into graphs, and what is forbidden while one is under way.
//
// A graph is the list of its operations in the order of issue, each with the stream that it was captured from
// and what it comes after on the others.
#pragma once

#include <thread>

#include "test/standin/cudart/event.hpp"

namespace onehop::standin {

enum class NodeKind { kTask, kWait, kRecord };

struct Node {
  NodeKind kind = NodeKind::kTask;
  Task task;       ///< of kTask
  EventRef event;  ///< of kWait and kRecord
  uint64_t stream = 0;
  Progress after{};
};

}  // namespace onehop::standin

/// The opaque type behind cudaGraph_t.
struct CUgraph_st {
  std::vector<onehop::standin::Node> nodes;
};

namespace onehop::standin {

struct ActiveCapture {
  uint64_t id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;  ///< where it began
  bool valid = true;
  CUgraph_st graph;
  std::vector<StreamRef> streams;  ///< the first is the one that it began on
};

/// Adds an operation to the graph that the stream is being captured into.
cudaError_t add_node(CUstream_st& stream, Node node);
/// The stream waits for an event that was recorded in the capture, and so becomes part of it.
cudaError_t join_capture(const StreamRef& stream, const std::shared_ptr<ActiveCapture>& capture,
                         const Progress& progress);
/// The stream goes away: a capture that it is part of becomes invalid.
void leave_capture(CUstream_st& stream);

/// For calls that may wait or touch the device as a whole: forbidden while a capture objects, which is then
/// invalid.
cudaError_t check_unsafe_call(Lock& lock);
/// New work of the legacy default stream would wait for blocking streams: forbidden while one of them is
/// capturing.
cudaError_t check_legacy(const CUstream_st& stream);
/// Waiting for a stream or asking it is forbidden while it is capturing.
cudaError_t check_wait(const CUstream_st& stream);
/// The same for a whole device.
cudaError_t check_device_wait(Lock& lock, int device);

int exchange_capture_mode(int mode);

}  // namespace onehop::standin
