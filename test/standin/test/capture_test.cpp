#include <atomic>

#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

/// Adds one to the int behind the pointer.
void add_one(void* value) {
  ++*static_cast<int*>(value);
}

TEST(Capture, RunsNothingUntilLaunch) {
  TestStream stream;
  int runs = 0;
  const cudaGraphExec_t graph =
      capture(stream, [&] { EXPECT_CUDA(cudaLaunchHostFunc(stream, add_one, &runs)); });
  stream.synchronize();
  EXPECT_EQ(runs, 0);
  for (int i = 0; i < 3; ++i) EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  stream.synchronize();
  EXPECT_EQ(runs, 3);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
}

TEST(Capture, ReportsItself) {
  TestStream stream;
  cudaStreamCaptureStatus status;
  ASSERT_CUDA(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  unsigned long long ids[2] = {};
  for (unsigned long long& id : ids) {
    const cudaGraphExec_t graph = capture(stream, [&] {
#if CUDART_VERSION >= 13000
      EXPECT_CUDA(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
#else
      EXPECT_CUDA(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr));
#endif
      EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    });
    EXPECT_CUDA(cudaGraphExecDestroy(graph));
  }
  EXPECT_NE(ids[0], ids[1]);
}

TEST(Capture, SpreadsByEventsAndMustBeJoined) {
  TestStream stream, side;
  TestEvent fork, join;
  int runs = 0;
  const auto work = [&](bool joined) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_CUDA(cudaEventRecord(fork, stream));
    ASSERT_CUDA(cudaStreamWaitEvent(side, fork, 0));
    ASSERT_CUDA(cudaLaunchHostFunc(side, add_one, &runs));
    ASSERT_CUDA(cudaEventRecord(join, side));
    if (joined) {
      ASSERT_CUDA(cudaStreamWaitEvent(stream, join, 0));
    }
  };
  cudaGraph_t graph = nullptr;
  work(false);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  work(true);
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  ASSERT_CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  ASSERT_CUDA(cudaGraphLaunch(executable, stream));
  stream.synchronize();
  EXPECT_EQ(runs, 1);
  EXPECT_CUDA(cudaGraphExecDestroy(executable));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  cudaGetLastError();
}

TEST(Capture, BranchesRunAtTheSameTime) {
  // Two ranks of one process in one graph: each waits for the other, as two GPUs would.
  TestStream stream, side;
  TestEvent fork, join;
  static std::atomic<int> met;
  met = 0;
  const auto meet = [](void*) {
    ++met;
    while (met < 2) std::this_thread::yield();
  };
  const cudaGraphExec_t graph = capture(stream, [&] {
    EXPECT_CUDA(cudaEventRecord(fork, stream));
    EXPECT_CUDA(cudaStreamWaitEvent(side, fork, 0));
    EXPECT_CUDA(cudaLaunchHostFunc(stream, meet, nullptr));
    EXPECT_CUDA(cudaLaunchHostFunc(side, meet, nullptr));
    EXPECT_CUDA(cudaEventRecord(join, side));
    EXPECT_CUDA(cudaStreamWaitEvent(stream, join, 0));
  });
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  stream.synchronize();
  EXPECT_EQ(met, 2);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
}

TEST(Capture, IsInvalidAfterAForbiddenCall) {
  TestStream stream;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  std::thread([&] { EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorStreamCaptureUnsupported); }).join();
  int runs = 0;
  EXPECT_EQ(cudaLaunchHostFunc(stream, add_one, &runs), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  // The stream is an ordinary one again.
  ASSERT_CUDA(cudaLaunchHostFunc(stream, add_one, &runs));
  stream.synchronize();
  EXPECT_EQ(runs, 1);
  cudaGetLastError();
}

TEST(Capture, ModesSayWhoMayDoWhat) {
  TestStream stream;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  std::thread([&] { EXPECT_CUDA(cudaMalloc(&memory, 8)); }).join();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_CUDA(cudaFree(memory));
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  cudaGetLastError();
}

TEST(Capture, ForbidsWaitingForItsStream) {
  TestStream stream;
  cudaGraph_t graph = nullptr;
  for (const auto& wait : {std::function([&] { return cudaStreamSynchronize(stream); }),
                           std::function([&] { return cudaStreamQuery(stream); }),
                           std::function([&] { return cudaDeviceSynchronize(); })}) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(wait(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  }
  TestStream blocking(cudaStreamDefault);
  ASSERT_CUDA(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  DeviceArray<int>* array = new DeviceArray<int>(1);
  EXPECT_EQ(cudaMemset(array->data(), 0, 4), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  delete array;
  cudaGetLastError();
}

TEST(Capture, WaitsOnlyForItsOwnWork) {
  TestStream stream, other;
  TestEvent event;
  ASSERT_CUDA(cudaEventRecord(event, other));
  int runs = 0;
  ASSERT_CUDA(cudaLaunchHostFunc(other, add_one, &runs));
  ASSERT_CUDA(cudaEventRecord(event, other));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  other.synchronize();
  cudaGetLastError();
}

TEST(ExternalEvents, OrderALaunchAfterEagerWork) {
  TestStream stream, eager;
  TestEvent event;
  int runs = 0;
  const cudaGraphExec_t graph = capture(stream, [&] {
    EXPECT_CUDA(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
    EXPECT_CUDA(cudaLaunchHostFunc(stream, add_one, &runs));
  });
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));  // nothing is recorded yet
  stream.synchronize();
  EXPECT_EQ(runs, 1);
  Gate gate;
  gate.close_on(eager);
  EXPECT_CUDA(cudaEventRecord(event, eager));
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.open();
  stream.synchronize();
  EXPECT_EQ(runs, 2);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
  cudaGetLastError();
}

TEST(ExternalEvents, OrderEagerWorkAfterALaunch) {
  TestStream stream, eager;
  TestEvent event;
  int runs = 0;
  const cudaGraphExec_t graph = capture(stream, [&] {
    EXPECT_CUDA(cudaLaunchHostFunc(stream, add_one, &runs));
    EXPECT_CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    EXPECT_CUDA(cudaLaunchHostFunc(stream, add_one, &runs));
    EXPECT_CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  });
  EXPECT_CUDA(cudaEventQuery(event));
  Gate gate;
  gate.close_on(stream);
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_CUDA(cudaStreamWaitEvent(eager, event, 0));
  EXPECT_EQ(cudaStreamQuery(eager), cudaErrorNotReady);
  gate.open();
  eager.synchronize();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
  cudaGetLastError();
}

}  // namespace
}  // namespace onehop::standin
