#include "plugin/cuda/capture_record.hpp"

#include <algorithm>
#include <vector>

#include "plugin/cuda/edge_data.hpp"

namespace onehop::capture_record {

namespace {

/// The nodes on the other side of a node's edges, and what is said of each edge (as of programmatic
/// launches).
struct Neighbours {
  std::vector<cudaGraphNode_t> nodes;
  std::vector<cudaGraphEdgeData> edges;

  bool hold(cudaGraphNode_t node) const { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); }
};

template <class Get>
cudaError_t all_of(Get get, cudaGraphNode_t node, Neighbours& found) {
  size_t count = 0;
  cudaError_t error = get(node, nullptr, nullptr, &count);
  found.nodes.resize(count);
  found.edges.resize(count);
  if (error == cudaSuccess && count > 0) error = get(node, found.nodes.data(), found.edges.data(), &count);
  return error;
}

cudaError_t before(cudaGraphNode_t node, Neighbours& found) {
  return all_of(ONEHOP_V2(cudaGraphNodeGetDependencies), node, found);
}

cudaError_t behind(cudaGraphNode_t node, Neighbours& found) {
  return all_of(ONEHOP_V2(cudaGraphNodeGetDependentNodes), node, found);
}

cudaError_t add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
  return ONEHOP_V2(cudaGraphAddDependencies)(graph, &from, &to, nullptr, 1);
}

cudaError_t remove_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to,
                        const cudaGraphEdgeData& said = {}) {
  return ONEHOP_V2(cudaGraphRemoveDependencies)(graph, &from, &to, &said, 1);
}

cudaError_t set_frontier(cudaStream_t stream, cudaGraphNode_t node) {
  return ONEHOP_V2(cudaStreamUpdateCaptureDependencies)(stream, &node, nullptr, 1,
                                                        cudaStreamSetCaptureDependencies);
}

/// What comes behind `record` comes behind `instead`.
cudaError_t take_out(cudaGraph_t graph, cudaGraphNode_t record, cudaGraphNode_t instead) {
  Neighbours followers, known;
  cudaError_t error = behind(record, followers);
  for (size_t i = 0; i < followers.nodes.size(); ++i) {
    cudaGraphNode_t follower = followers.nodes[i];
    if (error == cudaSuccess) error = before(follower, known);
    if (error == cudaSuccess) error = remove_edge(graph, record, follower, followers.edges[i]);
    if (error == cudaSuccess && !known.hold(instead)) error = add_edge(graph, instead, follower);
  }
  return error;
}

}  // namespace

cudaError_t info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                 cudaGraph_t* graph, const cudaGraphNode_t** frontier, size_t* count) {
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, status, id, graph, frontier, nullptr, count);
#else
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, frontier, count);
#endif
}

cudaError_t put(cudaEvent_t event, cudaStream_t stream, RecordPlace& place) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* frontier = nullptr;
  size_t count = 0;
  cudaError_t error = info(stream, &status, nullptr, &graph, &frontier, &count);
  if (error == cudaSuccess && (status != cudaStreamCaptureStatusActive || count != 1))
    error = cudaErrorStreamCaptureInvalidated;
  if (error != cudaSuccess) return error;

  cudaGraphNode_t operation = frontier[0];
  auto record = static_cast<cudaGraphNode_t>(place.record);
  const auto stood_behind = static_cast<cudaGraphNode_t>(place.behind);
  if (record != nullptr && !place.aside) {
    Neighbours known;
    error = before(operation, known);
    if (error != cudaSuccess) return error;
    place.aside = known.nodes.size() > 1 && known.hold(record);
    if (place.aside) record = nullptr;
  }

  if (record == nullptr) {
    error = cudaGraphAddEventRecordNode(&record, graph, &operation, 1, event);
  } else {
    // A graph under capture allows edges to be added and removed, though not nodes to be removed.
    if (!place.aside) error = take_out(graph, record, stood_behind);
    if (error == cudaSuccess) error = remove_edge(graph, stood_behind, record);
    if (error == cudaSuccess) error = add_edge(graph, operation, record);
  }
  if (error == cudaSuccess && !place.aside) error = set_frontier(stream, record);
  if (error != cudaSuccess) return error;
  place.record = record;
  place.behind = operation;
  return cudaSuccess;
}

}  // namespace onehop::capture_record
