// Correctness through the whole plugin, in an NCCL program with all ranks in one process: in groups by one
// thread, and with a thread for each rank; eager and captured (also when the first call of the communicator
// stands in the capture).
//
//   nccl-check RANKS
#include <cstring>
#include <random>

#include "test/gpu/nccl_node.hpp"

namespace onehop::test {
namespace {

constexpr size_t kMost = 40000;

class Check {
 public:
  explicit Check(int ranks) : node_(ranks), send_(node_.size()), receive_(node_.size()) {
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMalloc(reinterpret_cast<void**>(&send_[r]), kMost * sizeof(float)));
      MUST(cudaMalloc(reinterpret_cast<void**>(&receive_[r]), kMost * sizeof(float)));
    }
  }

  void first_call_in_a_capture() {
    const size_t count = 1000;
    fill(count, 1);
    std::vector<cudaGraphExec_t> graphs(node_.size());
    node_.in_threads([&](size_t r) {
      cudaGraph_t graph;
      MUST(cudaStreamBeginCapture(node_.streams[r], cudaStreamCaptureModeThreadLocal));
      for (int k = 0; k < 3; ++k) reduce(r, count);
      MUST(cudaStreamEndCapture(node_.streams[r], &graph));
      MUST(cudaGraphInstantiate(&graphs[r], graph, 0));
    });
    for (int replay = 0; replay < 100; ++replay) {
      for (size_t r = 0; r < node_.size(); ++r) {
        MUST(cudaSetDevice(node_.devices[r]));
        MUST(cudaGraphLaunch(graphs[r], node_.streams[r]));
      }
      if (replay % 3 == 0) node_.in_group([&](size_t r) { reduce(r, count); });
    }
    node_.synchronize();
    verify(count, 1);
  }

  void eager(bool threads) {
    std::mt19937 random(threads ? 5 : 6);
    for (unsigned call = 0; call < 400; ++call) {
      const size_t count = call % 5 == 4 ? 1 + random() % kMost : 1 + random() % 16384;
      fill(count, call);
      const auto part = [&](size_t r) { reduce(r, count); };
      threads ? node_.in_threads(part) : node_.in_group(part);
      node_.synchronize();
      verify(count, call);
    }
  }

 private:
  static float value(size_t rank, unsigned call, size_t i) {
    return static_cast<float>((i * 7 + rank * 13 + call * 29) % 101);
  }
  void fill(size_t count, unsigned call) {
    std::vector<float> host(count);
    for (size_t r = 0; r < node_.size(); ++r) {
      for (size_t i = 0; i < count; ++i) host[i] = value(r, call, i);
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMemcpy(send_[r], host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
      MUST(cudaMemset(receive_[r], 0xA5, count * sizeof(float)));
    }
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaDeviceSynchronize());
    }
  }
  void reduce(size_t r, size_t count) {
    MUST(ncclAllReduce(send_[r], receive_[r], count, ncclFloat, ncclSum, node_.comms[r], node_.streams[r]));
  }
  void verify(size_t count, unsigned call) {
    std::vector<float> host(count);
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMemcpy(host.data(), receive_[r], count * sizeof(float), cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (size_t s = 0; s < node_.size(); ++s) expected += value(s, call, i);
        if (host[i] != expected)
          fail("wrong result: rank " + std::to_string(r) + " count " + std::to_string(count));
      }
    }
  }

  NcclNode node_;
  std::vector<float*> send_, receive_;
};

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  alarm(240);
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  {
    Check check(ranks);
    check.first_call_in_a_capture();
    check.eager(false);
    check.eager(true);
  }
  {
    Check check(ranks);  // the first call in a group
    check.eager(false);
  }
  const LoadedOnehop onehop;
  const onehopStatistics s = onehop.statistics();
  std::printf("nccl-check: %d ranks right; onehop %s, %llu calls taken, %llu passed, %llu communicators on\n",
              ranks, onehop.found() ? "loaded" : "not loaded", static_cast<unsigned long long>(s.taken),
              static_cast<unsigned long long>(s.passed), static_cast<unsigned long long>(s.communicators_on));
  return onehop.found() && s.taken == 0 ? 1 : 0;
}
