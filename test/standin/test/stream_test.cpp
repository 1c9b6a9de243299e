#include <chrono>

#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

using namespace std::chrono_literals;

TEST(Streams, RunInOrderBesideTheProgram) {
  TestStream stream;
  Gate gate;
  gate.close_on(stream);
  DeviceArray<char> array(100);
  ASSERT_CUDA(cudaMemsetAsync(array.data(), 1, 100, stream));
  ASSERT_CUDA(cudaMemsetAsync(array.data(), 2, 50, stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  gate.open();
  stream.synchronize();
  EXPECT_CUDA(cudaStreamQuery(stream));
  EXPECT_EQ(array[49], 2);
  EXPECT_EQ(array[50], 1);
}

TEST(Streams, HaveIdsThatAreNotUsedAgain) {
  unsigned long long first = 0, second = 0;
  {
    TestStream stream;
    ASSERT_CUDA(cudaStreamGetId(stream, &first));
  }
  TestStream stream;
  ASSERT_CUDA(cudaStreamGetId(stream, &second));
  EXPECT_NE(first, second);
}

TEST(Streams, FinishTheirWorkAfterTheyAreDestroyed) {
  DeviceArray<char> array(1);
  Gate gate;
  TestEvent event;
  {
    TestStream stream;
    gate.close_on(stream);
    ASSERT_CUDA(cudaMemsetAsync(array.data(), 9, 1, stream));
    ASSERT_CUDA(cudaEventRecord(event, stream));
  }
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  gate.open();
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaEventQuery(event));
  EXPECT_EQ(array[0], 9);
}

TEST(Streams, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  TestStream blocking(cudaStreamDefault), free;
  Gate gate;
  gate.close_on(blocking);
  DeviceArray<char> array(2);
  ASSERT_CUDA(cudaMemsetAsync(array.data(), 1, 1, cudaStreamLegacy));
  TestStream later(cudaStreamDefault);
  ASSERT_CUDA(cudaMemsetAsync(array.data() + 1, 1, 1, later));
  EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(later), cudaErrorNotReady);
  EXPECT_CUDA(cudaStreamQuery(free));
  cudaGetLastError();
  gate.open();
  later.synchronize();
  EXPECT_EQ(array[0], 1);
  EXPECT_EQ(array[1], 1);
}

TEST(Streams, PerThreadStreamIsOnePerThread) {
  unsigned long long mine = 0, others = 0;
  ASSERT_CUDA(cudaStreamGetId(cudaStreamPerThread, &mine));
  std::thread([&] { EXPECT_CUDA(cudaStreamGetId(cudaStreamPerThread, &others)); }).join();
  EXPECT_NE(mine, others);
}

TEST(Events, WaitSeesTheRecordThatIsNewestWhenItIsCalled) {
  TestStream a, b, c;
  TestEvent event;
  Gate first, second;
  first.close_on(a);
  ASSERT_CUDA(cudaEventRecord(event, a));
  ASSERT_CUDA(cudaStreamWaitEvent(b, event, 0));
  second.close_on(c);
  ASSERT_CUDA(cudaEventRecord(event, c));
  EXPECT_EQ(cudaStreamQuery(b), cudaErrorNotReady);
  first.open();
  b.synchronize();  // although the newer record is not reached
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  second.open();
  EXPECT_CUDA(cudaEventSynchronize(event));
  cudaGetLastError();
}

TEST(Events, UnrecordedOnesHoldNothingUp) {
  TestStream stream;
  TestEvent event;
  EXPECT_CUDA(cudaEventQuery(event));
  EXPECT_CUDA(cudaStreamWaitEvent(stream, event, 0));
  stream.synchronize();
}

TEST(Events, MeasureTime) {
  TestStream stream;
  TestEvent start(cudaEventDefault), end(cudaEventDefault);
  ASSERT_CUDA(cudaEventRecord(start, stream));
  ASSERT_CUDA(cudaLaunchHostFunc(
      stream, [](void*) { std::this_thread::sleep_for(20ms); }, nullptr));
  ASSERT_CUDA(cudaEventRecord(end, stream));
  ASSERT_CUDA(cudaEventSynchronize(end));
  float milliseconds = 0;
  ASSERT_CUDA(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 19.0f);
}

}  // namespace
}  // namespace onehop::standin
