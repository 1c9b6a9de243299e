// Where the external record of a capture stands: the graphs that streams, forks and joins make, node by node.
#include "plugin/cuda/capture_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "plugin/cuda/edge_data.hpp"
#include "test/gpu/delay.hpp"

namespace onehop::test {
namespace {

void ok(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

/// Two streams in one capture, begun on the first; an operation is an empty kernel with a record behind it.
class Capture {
 public:
  Capture() {
    for (cudaStream_t& stream : streams_) ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&done, &edge_}) ok(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    ok(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeRelaxed));
  }
  ~Capture() {
    if (executable_ != nullptr) ok(cudaGraphExecDestroy(executable_));
    if (graph_ != nullptr) ok(cudaGraphDestroy(graph_));
    for (cudaEvent_t event : {done, edge_}) ok(cudaEventDestroy(event));
    for (cudaStream_t stream : streams_) ok(cudaStreamDestroy(stream));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraphNode_t operation(int stream) {
    const cudaGraphNode_t made = work(stream);
    ok(capture_record::put(done, streams_[stream], place));
    return made;
  }
  cudaGraphNode_t work(int stream, cudaError_t (*kernel)(cudaStream_t) = empty_kernel) {
    ok(kernel(streams_[stream]));
    const cudaGraphNode_t* frontier = nullptr;
    cudaStreamCaptureStatus status{};
    size_t count = 0;
    ok(capture_record::info(streams_[stream], &status, nullptr, nullptr, &frontier, &count));
    EXPECT_EQ(count, 1u);
    return frontier[0];
  }
  /// As PyTorch's wait_stream().
  void wait(int stream, int for_stream) {
    ok(cudaEventRecord(edge_, streams_[for_stream]));
    ok(cudaStreamWaitEvent(streams_[stream], edge_));
  }

  /// The end; the graph can be replayed, and records the event.
  void end() {
    ok(cudaStreamEndCapture(streams_[0], &graph_));
    size_t count = 0;
    ok(ONEHOP_V2(cudaGraphGetEdges)(graph_, nullptr, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> said(count);
    ok(ONEHOP_V2(cudaGraphGetEdges)(graph_, from.data(), to.data(), said.data(), &count));
    for (size_t i = 0; i < count; ++i) next_[from[i]].insert(to[i]);
    ok(cudaGraphGetNodes(graph_, nullptr, &count));
    nodes_.resize(count);
    ok(cudaGraphGetNodes(graph_, nodes_.data(), &count));
    for (cudaGraphNode_t node : nodes_) {
      cudaGraphNodeType type{};
      ok(cudaGraphNodeGetType(node, &type));
      if (type == cudaGraphNodeTypeEventRecord) records.push_back(node);
    }
    ok(cudaGraphInstantiate(&executable_, graph_));
    for (int replay = 0; replay < 3; ++replay) ok(cudaGraphLaunch(executable_, streams_[0]));
    ok(cudaEventSynchronize(done));
    ok(cudaStreamSynchronize(streams_[0]));
  }

  bool comes_behind(cudaGraphNode_t later, cudaGraphNode_t sooner) const {
    const auto found = next_.find(sooner);
    return found != next_.end() && std::any_of(found->second.begin(), found->second.end(), [&](auto node) {
             return node == later || comes_behind(later, node);
           });
  }
  bool is_one_line() const {
    size_t edges = 0;
    for (const auto& [node, next] : next_) {
      if (next.size() != 1) return false;
      edges += next.size();
    }
    return edges + 1 == nodes_.size();
  }

  cudaEvent_t done = nullptr;
  RecordPlace place;
  std::vector<cudaGraphNode_t> records;  ///< after end()

 private:
  cudaStream_t streams_[2] = {};
  cudaEvent_t edge_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::vector<cudaGraphNode_t> nodes_;
  std::map<cudaGraphNode_t, std::set<cudaGraphNode_t>> next_;
};

TEST(CaptureRecord, OneStreamStaysOneLineWithOneRecord) {
  Capture capture;
  capture.work(0);
  for (int i = 0; i < 5; ++i) {
    capture.operation(0);
    if (i % 2 == 0) capture.work(0);
  }
  const cudaGraphNode_t last = capture.operation(0), after = capture.work(0);
  capture.end();
  ASSERT_EQ(capture.records.size(), 1u);
  EXPECT_TRUE(capture.is_one_line());
  EXPECT_TRUE(capture.comes_behind(capture.records[0], last));
  EXPECT_TRUE(capture.comes_behind(after, capture.records[0]));
}

TEST(CaptureRecord, WhatIsLaunchedEarlyBehindItMovesWithTheLine) {
  Capture capture;
  const cudaGraphNode_t first = capture.operation(0), early = capture.work(0, early_kernel);
  const cudaGraphNode_t second = capture.operation(0);
  capture.end();
  EXPECT_TRUE(capture.is_one_line());
  EXPECT_TRUE(capture.comes_behind(early, first));
  EXPECT_TRUE(capture.comes_behind(second, early));
}

// Work forked off behind an operation runs beside the next one.
TEST(CaptureRecord, ForkedWorkStaysBehindTheOperationThatItFollowed) {
  Capture capture;
  const cudaGraphNode_t first = capture.operation(0);
  capture.wait(1, 0);
  const cudaGraphNode_t forked = capture.work(1), second = capture.operation(0);
  capture.wait(0, 1);
  const cudaGraphNode_t joined = capture.work(0);
  capture.end();
  EXPECT_TRUE(capture.comes_behind(forked, first));
  EXPECT_FALSE(capture.comes_behind(forked, second));
  EXPECT_TRUE(capture.comes_behind(joined, second));
  ASSERT_EQ(capture.records.size(), 1u);
  EXPECT_TRUE(capture.comes_behind(capture.records[0], second));
}

// Where two lines join ahead of an operation and the record is on neither's end, nothing stands aside.
TEST(CaptureRecord, JoinedLinesAheadOfAnOperationAreALineAgain) {
  Capture capture;
  capture.operation(0);
  capture.wait(1, 0);
  capture.work(0);
  capture.work(1);
  capture.wait(0, 1);
  const cudaGraphNode_t last = capture.operation(0), after = capture.work(0);
  capture.end();
  ASSERT_EQ(capture.records.size(), 1u);
  EXPECT_TRUE(capture.comes_behind(capture.records[0], last));
  EXPECT_TRUE(capture.comes_behind(after, capture.records[0]));
}

// A communication stream: the compute stream waits for an operation, the next one starts, compute goes on.
TEST(CaptureRecord, ComputeGoesOnBesideTheOperationThatWasStartedBeforeIt) {
  Capture capture;
  std::vector<cudaGraphNode_t> operations, computed;
  computed.push_back(capture.work(0));
  for (int i = 0; i < 4; ++i) {
    capture.wait(1, 0);
    operations.push_back(capture.operation(1));
    computed.push_back(capture.work(0));
    capture.wait(0, 1);
  }
  const cudaGraphNode_t last = capture.work(0);
  capture.end();
  for (size_t i = 0; i < operations.size(); ++i) {
    EXPECT_TRUE(capture.comes_behind(operations[i], computed[i])) << i;
    EXPECT_FALSE(capture.comes_behind(computed[i + 1], operations[i])) << i;
    EXPECT_TRUE(capture.comes_behind(i + 1 < operations.size() ? operations[i + 1] : last, operations[i]))
        << i;
  }
  // The one that was in line is left there, ahead of the one that moved.
  ASSERT_EQ(capture.records.size(), 2u);
  if (capture.comes_behind(capture.records[0], capture.records[1]))
    std::swap(capture.records[0], capture.records[1]);
  EXPECT_TRUE(capture.comes_behind(capture.records[1], capture.records[0]));
  EXPECT_TRUE(capture.comes_behind(capture.records[1], operations.back()));
  EXPECT_FALSE(capture.comes_behind(last, capture.records[1]));
}

// The operations of a communicator go from stream to stream: no circle, and the record behind the last.
TEST(CaptureRecord, OperationsThatChangeStreamsKeepTheRecordBehindTheLast) {
  for (const bool first_on_fork : {false, true}) {
    Capture capture;
    capture.work(0);
    std::vector<cudaGraphNode_t> operations;
    for (int i = 0; i < 6; ++i) {
      const int stream = (i + first_on_fork) % 2;
      if (i > 0 || first_on_fork) capture.wait(stream, 1 - stream);
      operations.push_back(capture.operation(stream));
    }
    capture.wait(0, 1);
    capture.work(0);
    capture.end();
    for (size_t i = 1; i < operations.size(); ++i)
      EXPECT_TRUE(capture.comes_behind(operations[i], operations[i - 1])) << i;
    EXPECT_TRUE(std::any_of(capture.records.begin(), capture.records.end(),
                            [&](auto record) { return capture.comes_behind(record, operations.back()); }));
  }
}

TEST(CaptureRecord, AStreamThatIsNotCapturedIsAnError) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ok(cudaEventCreate(&event));
  RecordPlace place;
  EXPECT_EQ(capture_record::put(event, stream, place), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(place.record, nullptr);
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace onehop::test
