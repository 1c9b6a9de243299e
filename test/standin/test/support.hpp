// What the tests of the stand-in share: checks that name the call, device arrays, and ranks that are threads.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)
#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess)
#define EXPECT_NCCL(call) EXPECT_EQ(call, ncclSuccess)
#define ASSERT_NCCL(call) ASSERT_EQ(call, ncclSuccess)

namespace onehop::standin {

/// A device array of the current device.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count, T value = T{}) : count_(count) {
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
    set(value);
  }
  DeviceArray(const DeviceArray&) = delete;
  ~DeviceArray() { EXPECT_CUDA(cudaFree(data_)); }

  T* data() const { return data_; }
  /// Device memory is ordinary memory here, so tests look at it directly when the streams are idle.
  T& operator[](size_t index) const { return data_[index]; }
  void set(T value) { std::fill_n(data_, count_, value); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, flags));
  }
  TestStream(const TestStream&) = delete;
  ~TestStream() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { EXPECT_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDisableTiming) {
    EXPECT_CUDA(cudaEventCreateWithFlags(&event_, flags));
  }
  TestEvent(const TestEvent&) = delete;
  ~TestEvent() { EXPECT_CUDA(cudaEventDestroy(event_)); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Work that keeps a stream busy until it is opened.
class Gate {
 public:
  void close_on(cudaStream_t stream);
  void open();
  ~Gate() { open(); }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Runs `rank(r)` on a thread for each rank, with device r current.
void run_ranks(int ranks, const std::function<void(int rank)>& rank);

/// run_ranks() with a communicator, which is destroyed at the end.
void with_communicator(int ranks, const std::function<void(int rank, ncclComm_t comm)>& rank);

/// Captures what `work` does on `stream`; launch it with cudaGraphLaunch.
cudaGraphExec_t capture(cudaStream_t stream, const std::function<void()>& work,
                        cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal);

}  // namespace onehop::standin
