// Graphs that can be launched. A launch is one piece of work of the stream that it is launched on; in it,
// what was captured from different streams runs at the same time, as far as the capture allows: ranks of one
// graph may wait for each other.

#include <algorithm>

#include "test/standin/cudart/capture.hpp"

using namespace onehop::standin;

/// The opaque type behind cudaGraphExec_t.
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<Node>> nodes;
  PointRef last;  ///< when the latest launch is done: launches of one graph do not overlap
};

namespace {

/// An operation of one launch: the events of external waits and records are looked up when the graph is
/// launched.
struct Step {
  const Node* node = nullptr;
  PointRef wait, record;
};
using Lanes = std::map<uint64_t, std::vector<Step>>;  ///< by the stream that was captured

Lanes resolve(Lock&, const std::vector<Node>& nodes) {
  Lanes lanes;
  for (const Node& node : nodes) {
    Step step{&node, nullptr, nullptr};
    if (node.kind == NodeKind::kWait) step.wait = node.event->point;
    if (node.kind == NodeKind::kRecord) {
      step.record = node.event->point = std::make_shared<Point>();
      node.event->capture.reset();
    }
    lanes[node.stream].push_back(std::move(step));
  }
  return lanes;
}

class Replay {
 public:
  void run(const Lanes& lanes) {
    std::vector<std::thread> others;
    for (const auto& lane : lanes) {
      if (lane.first != lanes.begin()->first) others.emplace_back([&] { run_lane(lane.first, lane.second); });
    }
    if (!lanes.empty()) run_lane(lanes.begin()->first, lanes.begin()->second);
    for (std::thread& other : others) other.join();
  }

 private:
  void run_lane(uint64_t id, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      await(step.node->after);
      if (step.node->kind == NodeKind::kTask) {
        step.node->task();
      } else {
        Lock lock;
        if (is_pending(step.wait)) wait_for(lock, step.wait);
        if (step.record != nullptr) reach(lock, step.record);
      }
      if (step.node->kind == NodeKind::kRecord) continue;  // nothing comes after one
      const std::lock_guard guard(mutex_);
      ++done_[id];
      changed_.notify_all();
    }
  }

  void await(const Progress& after) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::all_of(after.begin(), after.end(),
                         [&](const auto& entry) { return done_[entry.first] >= entry.second; });
    });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Progress done_;
};

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph) {
  if (executable == nullptr || graph == nullptr) return cudaErrorInvalidValue;
  Lock lock;
  *executable = new CUgraphExec_st{std::make_shared<const std::vector<Node>>(graph->nodes), nullptr};
  return cudaSuccess;
}

}  // namespace

extern "C" {

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                 size_t) {
#endif
  return report(instantiate(executable, graph));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  return report(instantiate(executable, graph));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  if (executable == nullptr) return report(cudaErrorInvalidValue);
  Lock lock;
  const StreamRef stream = find_stream(lock, handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {  // becomes a part of the other graph
    for (const Node& node : *executable->nodes) {
      if (const cudaError_t error = add_node(*stream, {node.kind, node.task, node.event}))
        return report(error);
    }
    return cudaSuccess;
  }
  if (const cudaError_t error = check_legacy(*stream)) return report(error);
  auto task = [nodes = executable->nodes, lanes = resolve(lock, *executable->nodes)] { Replay().run(lanes); };
  executable->last = enqueue(lock, stream, std::move(task), {executable->last});
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return report(executable == nullptr ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return report(cudaErrorInvalidValue);
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return report(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  // Nodes have no handles here: only how many there are can be asked.
  if (graph == nullptr || count == nullptr || nodes != nullptr) return report(cudaErrorInvalidValue);
  *count = graph->nodes.size();
  return cudaSuccess;
}

}  // extern "C"
