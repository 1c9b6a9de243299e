// Graphs that can be launched: each launch runs the captured operations, in order, on the stream that it is
// launched on.

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
  const Task* task = nullptr;
  PointRef wait, record;
};

std::vector<Step> resolve(Lock&, const std::vector<Node>& nodes) {
  std::vector<Step> steps;
  steps.reserve(nodes.size());
  for (const Node& node : nodes) {
    switch (node.kind) {
      case NodeKind::kTask:
        steps.push_back({&node.task, nullptr, nullptr});
        break;
      case NodeKind::kWait:
        if (is_pending(node.event->point)) steps.push_back({nullptr, node.event->point, nullptr});
        break;
      case NodeKind::kRecord:
        node.event->point = std::make_shared<Point>();
        node.event->capture.reset();
        steps.push_back({nullptr, nullptr, node.event->point});
        break;
    }
  }
  return steps;
}

void run(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (step.task != nullptr) {
      (*step.task)();
      continue;
    }
    Lock lock;
    if (step.wait != nullptr) wait_for(lock, step.wait);
    if (step.record != nullptr) reach(lock, step.record);
  }
}

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
      if (const cudaError_t error = add_node(*stream, node)) return report(error);
    }
    return cudaSuccess;
  }
  if (const cudaError_t error = check_legacy(*stream)) return report(error);
  auto task = [nodes = executable->nodes, steps = resolve(lock, *executable->nodes)] { run(steps); };
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
