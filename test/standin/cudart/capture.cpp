#include "test/standin/cudart/capture.hpp"

#include <algorithm>

#include "test/standin/cudart/devices.hpp"

namespace onehop::standin {
namespace {

struct Captures {
  uint64_t next_id = 1;
  std::vector<std::shared_ptr<ActiveCapture>> active;
};

// Never destroyed: the threads of streams outlive main().
Captures& captures() {
  static auto* all = new Captures;
  return *all;
}

thread_local int thread_mode = cudaStreamCaptureModeGlobal;

/// Whether a capture forbids unsafe calls on the calling thread.
bool objects(const ActiveCapture& capture) {
  if (thread_mode == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed)
    return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return thread_mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
}

/// Invalidates the captures that a predicate picks. True: there was one.
template <class Predicate>
bool invalidate_if(Predicate hit) {
  bool any = false;
  for (const auto& capture : captures().active) {
    if (!hit(*capture)) continue;
    capture->valid = false;
    any = true;
  }
  return any;
}

/// Whether everything that any stream of the capture did is something that its first stream depends on.
bool is_joined(const ActiveCapture& capture) {
  const Progress& origin = capture.streams.front()->progress;
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const StreamRef& stream) {
    const auto mine = stream->progress.find(stream->id);
    if (mine == stream->progress.end()) return true;
    const auto seen = origin.find(stream->id);
    return seen != origin.end() && seen->second >= mine->second;
  });
}

void end(const std::shared_ptr<ActiveCapture>& capture) {
  for (const StreamRef& stream : capture->streams) {
    stream->capture = nullptr;
    stream->progress.clear();
  }
  capture->streams.clear();
  auto& active = captures().active;
  active.erase(std::remove(active.begin(), active.end(), capture), active.end());
}

}  // namespace

cudaError_t add_node(CUstream_st& stream, Node node) {
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  node.stream = stream.id;
  node.after = stream.progress;
  // Nothing on the stream depends on a record, so nobody needs to join one.
  if (node.kind != NodeKind::kRecord) ++stream.progress[stream.id];
  stream.capture->graph.nodes.push_back(std::move(node));
  return cudaSuccess;
}

cudaError_t join_capture(const StreamRef& stream, const std::shared_ptr<ActiveCapture>& capture,
                         const Progress& progress) {
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  if (stream->kind == StreamKind::kLegacy) {
    capture->valid = false;
    return cudaErrorStreamCaptureImplicit;
  }
  if (stream->capture == nullptr) {
    stream->capture = capture;
    capture->streams.push_back(stream);
  } else if (stream->capture != capture) {
    stream->capture->valid = capture->valid = false;
    return cudaErrorStreamCaptureMerge;
  }
  for (const auto& [id, count] : progress) {
    uint64_t& mine = stream->progress[id];
    mine = std::max(mine, count);
  }
  return cudaSuccess;
}

void leave_capture(CUstream_st& stream) {
  if (stream.capture == nullptr) return;
  stream.capture->valid = false;
  if (stream.capture->streams.front().get() == &stream) {
    end(std::shared_ptr<ActiveCapture>(stream.capture));
    return;
  }
  auto& members = stream.capture->streams;
  members.erase(std::remove_if(members.begin(), members.end(),
                               [&](const StreamRef& member) { return member.get() == &stream; }),
                members.end());
  stream.capture = nullptr;
}

cudaError_t check_unsafe_call(Lock&) {
  return invalidate_if(objects) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t check_legacy(const CUstream_st& stream) {
  if (stream.kind != StreamKind::kLegacy) return cudaSuccess;
  const bool forbidden = invalidate_if([&](const ActiveCapture& capture) {
    return std::any_of(capture.streams.begin(), capture.streams.end(), [&](const StreamRef& member) {
      return member->kind == StreamKind::kBlocking && member->device == stream.device;
    });
  });
  return forbidden ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t check_wait(const CUstream_st& stream) {
  if (stream.capture == nullptr) return check_legacy(stream);
  stream.capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t check_device_wait(Lock&, int device) {
  const bool forbidden = invalidate_if([&](const ActiveCapture& capture) {
    return std::any_of(capture.streams.begin(), capture.streams.end(),
                       [&](const StreamRef& member) { return member->device == device; });
  });
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

int exchange_capture_mode(int mode) {
  return std::exchange(thread_mode, mode);
}

}  // namespace onehop::standin

using namespace onehop::standin;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return report(cudaErrorInvalidValue);
  }
  if (stream->kind == StreamKind::kLegacy) return report(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr) return report(cudaErrorIllegalState);
  auto capture = std::make_shared<ActiveCapture>();
  capture->id = captures().next_id++;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  stream->capture = capture;
  captures().active.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (graph == nullptr) return report(cudaErrorInvalidValue);
  *graph = nullptr;
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<ActiveCapture> capture = stream->capture;
  if (capture == nullptr) return report(cudaErrorIllegalState);
  if (capture->streams.front() != stream) {
    capture->valid = false;
    return report(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return report(cudaErrorStreamCaptureWrongThread);
  }
  const bool joined = is_joined(*capture);
  end(capture);
  if (!capture->valid) return report(cudaErrorStreamCaptureInvalidated);
  if (!joined) return report(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st(std::move(capture->graph));
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* dependency_count) {
  if (edges != nullptr) *edges = nullptr;
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, size_t* dependency_count) {
#endif
  if (status == nullptr) return report(cudaErrorInvalidValue);
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_legacy(*stream)) return report(error);
  // Nodes have no handles here, and no edges: the list is the order.
  if (dependencies != nullptr) *dependencies = nullptr;
  if (dependency_count != nullptr) *dependency_count = 0;
  const ActiveCapture* capture = stream->capture.get();
  *status = capture == nullptr ? cudaStreamCaptureStatusNone
            : capture->valid   ? cudaStreamCaptureStatusActive
                               : cudaStreamCaptureStatusInvalidated;
  if (id != nullptr && capture != nullptr) *id = capture->id;
  if (graph != nullptr && capture != nullptr) *graph = &stream->capture->graph;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  if (status == nullptr) return report(cudaErrorInvalidValue);
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_legacy(*stream)) return report(error);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->valid   ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) {
    return report(cudaErrorInvalidValue);
  }
  *mode = static_cast<cudaStreamCaptureMode>(exchange_capture_mode(*mode));
  return cudaSuccess;
}

}  // extern "C"
