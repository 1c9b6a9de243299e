// Stock NCCL and onehop side by side: the same program is run twice, one after the other, without the plugin
// and with it, in one call. All ranks are in one process, with one thread, several on one GPU where there are
// fewer GPUs.
//
//   NCCL_NET_PLUGIN=libnccl-net-onehop.so nccl-bench LINKS OUT.json RANKS...
#include <algorithm>
#include <chrono>

#include "test/gpu/delay.hpp"
#include "test/gpu/sides.hpp"

namespace onehop::test {
namespace {

constexpr int kCallsPerGraph = 100, kReplays = 15;
constexpr size_t kSizes[] = {64,       1 << 10,   4 << 10,   16 << 10,  42 << 10,
                             64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr size_t kLargest = 1 << 20;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(int ranks, Results& results) : node_(ranks), results_(results), buffers_(node_.size()) {
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMalloc(&buffers_[r], 2 * kLargest));
      // Rank r sends r + 1 everywhere, as bf16; the sums are exact.
      const std::vector<uint16_t> values(kLargest / 2, bfloat16(static_cast<float>(r + 1)));
      MUST(cudaMemcpy(buffers_[r], values.data(), kLargest, cudaMemcpyHostToDevice));
    }
    node_.in_group([&](size_t r) { reduce(r, 64); });  // sets up
    node_.synchronize();
  }

  void run() {
    for (const size_t bytes : kSizes) {
      // Of several ranks on one GPU, NCCL's kernels for larger calls do not all fit on it at once.
      if (bytes > 512 << 10 && node_.shares_devices()) continue;
      poison();
      const uint64_t before = onehop_.statistics().taken;
      const double us = graph_us(bytes);
      taken_ = onehop_.statistics().taken > before;
      size_t wrong = count_wrong(bytes);
      row("graph", bytes, us, wrong);
      poison();
      const double host_us = host_us_per_call(bytes);
      const size_t wrong_eager = count_wrong(bytes);
      row("eager, host time of the call", bytes, host_us, wrong_eager);
      wrong += wrong_eager;
      std::printf(
          "%-6s %zu ranks %7zu B  graph %7.2f us   host time of an eager call %5.2f us   wrong %zu%s\n",
          with_onehop() ? "onehop" : "nccl", node_.size(), bytes, us, host_us, wrong,
          with_onehop() && !taken_ ? "   (passed to NCCL)" : "");
      std::fflush(stdout);
    }
  }

 private:
  void reduce(size_t r, size_t bytes) {
    auto* base = static_cast<unsigned char*>(buffers_[r]);
    MUST(ncclAllReduce(base, base + kLargest, bytes / 2, ncclBfloat16, ncclSum, node_.comms[r],
                       node_.streams[r]));
  }

  static uint16_t bfloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return static_cast<uint16_t>(bits >> 16);
  }

  void poison() {
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMemset(static_cast<unsigned char*>(buffers_[r]) + kLargest, 0xA5, kLargest));
      MUST(cudaDeviceSynchronize());
    }
  }

  size_t count_wrong(size_t bytes) {
    const auto n = static_cast<float>(node_.size());
    const uint16_t expected = bfloat16(n * (n + 1) / 2);
    std::vector<uint16_t> values(bytes / 2);
    size_t wrong = 0;
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMemcpy(values.data(), static_cast<unsigned char*>(buffers_[r]) + kLargest, bytes,
                      cudaMemcpyDeviceToHost));
      for (const uint16_t value : values) wrong += value != expected;
    }
    return wrong;
  }

  void row(const char* mode, size_t bytes, double us, size_t wrong) {
    const bool on = with_onehop();
    results_.add({{"side", on ? "onehop" : "nccl"},
                  {"plan", on ? "auto" : ""},
                  {"method", on && taken_ ? "auto" : ""},
                  {"ranks", node_.size()},
                  {"processes", 1},
                  {"bytes", bytes},
                  {"type", "bfloat16"},
                  {"op", "sum"},
                  {"mode", mode},
                  {"in_place", false},
                  {"taken", taken_},
                  {"us", us},
                  {"wrong", wrong}});
  }

  /// Time per call in a graph of kCallsPerGraph. Each rank's time begins when its graph does; the one that
  /// begins last waits for nobody, so the shortest is the time of the calls alone.
  double graph_us(size_t bytes) {
    std::vector<cudaGraphExec_t> graphs(node_.size());
    std::vector<cudaEvent_t> start(node_.size()), stop(node_.size());
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaEventCreate(&start[r]));
      MUST(cudaEventCreate(&stop[r]));
      MUST(cudaStreamBeginCapture(node_.streams[r], cudaStreamCaptureModeRelaxed));
    }
    for (int k = 0; k < kCallsPerGraph; ++k) node_.in_group([&](size_t r) { reduce(r, bytes); });
    for (size_t r = 0; r < node_.size(); ++r) {
      cudaGraph_t graph;
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaStreamEndCapture(node_.streams[r], &graph));
      MUST(cudaGraphInstantiate(&graphs[r], graph, 0));
      MUST(cudaGraphUpload(graphs[r], node_.streams[r]));
      MUST(cudaGraphDestroy(graph));
    }
    std::vector<double> times;
    for (int replay = 0; replay < kReplays; ++replay) {
      node_.synchronize();
      for (size_t r = 0; r < node_.size(); ++r) {
        MUST(cudaSetDevice(node_.devices[r]));
        MUST(delay(300'000, node_.streams[r]));
        MUST(cudaEventRecord(start[r], node_.streams[r]));
        MUST(cudaGraphLaunch(graphs[r], node_.streams[r]));
        MUST(cudaEventRecord(stop[r], node_.streams[r]));
      }
      node_.synchronize();
      float shortest = 1e9F;
      for (size_t r = 0; r < node_.size(); ++r) {
        float ms = 0;
        MUST(cudaEventElapsedTime(&ms, start[r], stop[r]));
        shortest = std::min(shortest, ms);
      }
      if (replay >= 3) times.push_back(shortest * 1000.0 / kCallsPerGraph);
    }
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaGraphExecDestroy(graphs[r]));
      MUST(cudaEventDestroy(start[r]));
      MUST(cudaEventDestroy(stop[r]));
    }
    return median(times);
  }

  /// What the caller's thread spends in ncclAllReduce, one thread per rank, no group, the GPU kept from being
  /// the bottleneck.
  double host_us_per_call(size_t bytes) {
    constexpr int kBatch = 20, kBatches = 15;
    std::vector<std::vector<double>> times(node_.size());
    node_.in_threads([&](size_t r) {
      for (int batch = 0; batch < kBatches; ++batch) {
        MUST(cudaStreamSynchronize(node_.streams[r]));
        const auto begin = std::chrono::steady_clock::now();
        for (int k = 0; k < kBatch; ++k) reduce(r, bytes);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (batch >= 3) times[r].push_back(took.count() / kBatch);
      }
    });
    double slowest = 0;
    for (auto& of_rank : times) slowest = std::max(slowest, median(of_rank));
    node_.synchronize();
    return slowest;
  }

  NcclNode node_;
  LoadedOnehop onehop_;  ///< found only once NCCL has loaded it
  bool taken_ = false;   ///< calls of the size that is being measured
  Results& results_;
  std::vector<void*> buffers_;
};

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  alarm(300);
  return compare_sides(argc, argv, "onehop and stock NCCL side by side, all ranks in one process", 1,
                       [](int ranks, Results& results) { Bench(ranks, results).run(); });
}
