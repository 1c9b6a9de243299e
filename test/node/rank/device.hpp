// Device memory and streams of a scenario, and the chains of calls that show their order.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "test/node/rank/rank.hpp"

namespace onehop::node {

class Stream {
 public:
  Stream() { MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  ~Stream() { MUST(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { MUST(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What `work` puts on the stream, as a graph.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& work,
        cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, mode));
    work();
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable_, graph, 0));
    MUST(cudaGraphDestroy(graph));
  }
  Graph(const Graph&) = delete;
  ~Graph() { MUST(cudaGraphExecDestroy(executable_)); }
  void launch(cudaStream_t stream) const { MUST(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// A device array of the device that was current when it was made. Host and device are in step only where a
/// stream was waited for.
template <class T>
class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    MUST(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
  }
  Array(size_t count, T value) : Array(count) { fill(value); }
  Array(const Array&) = delete;
  ~Array() { MUST(cudaFree(data_)); }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  void fill(T value) const { write(std::vector<T>(count_, value)); }
  void write(const std::vector<T>& values) const {
    MUST(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    MUST(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  bool holds(T value) const { return read() == std::vector<T>(count_, value); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

using Words = Array<uint32_t>;

/// Sum of `words`' words into `to`.
inline ncclResult_t sum(const Words& from, const Words& to, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(from.data(), to.data(), from.size(), ncclUint32, ncclSum, comm, stream);
}

/// A sum of uint32 by an operator that the program made, so that it is NCCL's: every input times one. It goes
/// with the communicator.
inline ncclRedOp_t made_sum(ncclComm_t comm) {
  ncclRedOp_t op = ncclSum;
  uint32_t one = 1;
  MUST(ncclRedOpCreatePreMulSum(&op, &one, ncclUint32, ncclScalarHostImmediate, comm));
  return op;
}

/// Keeps a stream busy until it is opened: work behind it on other streams that does not wait would overtake.
class Gate {
 public:
  void close_on(cudaStream_t stream) {
    auto* held = new std::shared_ptr<std::atomic<bool>>(open_);
    const auto wait = [](void* data) {
      const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> open(
          static_cast<std::shared_ptr<std::atomic<bool>>*>(data));
      while (!(*open)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    MUST(cudaLaunchHostFunc(stream, wait, held));
  }
  /// After a moment in which work that does not wait runs.
  void open() {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    open_->store(true);
  }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

/// Buffers 0, 1, 2, ...: call i sums buffer i into buffer i+1, so each call needs the one before it done.
/// With the value 1 in buffer 0, buffer i holds ranks^i.
class Chain {
 public:
  Chain(int ranks, size_t length, size_t count = 8) : ranks_(static_cast<uint32_t>(ranks)) {
    for (size_t i = 0; i <= length; ++i) buffers_.push_back(std::make_unique<Words>(count));
    reset();
  }
  void reset(uint32_t value = 1) {
    for (const auto& buffer : buffers_) buffer->fill(0xA5A5A5A5);
    buffers_[0]->fill(value);
    first_ = value;
  }
  void call(size_t i, ncclComm_t comm, cudaStream_t stream) const {
    MUST(sum(*buffers_[i], *buffers_[i + 1], comm, stream));
  }
  size_t length() const { return buffers_.size() - 1; }
  const Words& operator[](size_t i) const { return *buffers_[i]; }
  void check() const {
    uint32_t value = first_;
    for (size_t i = 0; i < buffers_.size(); ++i, value *= ranks_)
      must(buffers_[i]->holds(value),
           "call " + std::to_string(i) + " of a chain ran before its turn, or wrong: " +
               std::to_string(buffers_[i]->read()[0]) + " for " + std::to_string(value));
  }

 private:
  uint32_t ranks_, first_ = 1;
  std::vector<std::unique_ptr<Words>> buffers_;
};

}  // namespace onehop::node
