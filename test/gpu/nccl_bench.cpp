// Stock NCCL and onehop side by side in one process, by turns: the same communicators, buffers and graphs'
// shape; onehop is switched off and on with onehopEnable. All ranks in this process, one thread, several on
// one GPU where there are fewer GPUs.
//
//   nccl-bench LINKS OUT.json RANKS...
#include <algorithm>
#include <chrono>
#include <cstring>

#include "test/gpu/delay.hpp"
#include "test/gpu/nccl_node.hpp"
#include "test/gpu/results.hpp"

namespace onehop::test {
namespace {

constexpr int kCallsPerGraph = 100, kReplays = 15;
constexpr size_t kSizes[] = {64, 1024, 4096, 16384, 43008, 65536};
constexpr size_t kLargest = 65536;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(int ranks, const LoadedOnehop& onehop, Results& results)
      : node_(ranks), onehop_(onehop), results_(results), buffers_(node_.size()) {
    for (size_t r = 0; r < node_.size(); ++r) {
      MUST(cudaSetDevice(node_.devices[r]));
      MUST(cudaMalloc(&buffers_[r], 2 * kLargest));
      MUST(cudaMemset(buffers_[r], 0, 2 * kLargest));
    }
    node_.in_group([&](size_t r) { reduce(r, 64); });  // sets up
    node_.synchronize();
  }

  void run() {
    for (const size_t bytes : kSizes) {
      double us[2] = {}, host_us[2] = {};
      for (const bool on : {false, true}) {
        node_.synchronize();
        for (ncclComm_t comm : node_.comms) onehop_.enable(comm, on);
        us[on] = graph_us(bytes);
        host_us[on] = host_us_per_call(bytes);
        row(on, "graph", bytes, us[on]);
        row(on, "eager, host time of the call", bytes, host_us[on]);
      }
      std::printf(
          "%zu ranks %6zu B  graph: NCCL %6.2f us, onehop %6.2f us (%.2fx)   host time of an eager call: "
          "NCCL %5.2f us, "
          "onehop %5.2f us\n",
          node_.size(), bytes, us[0], us[1], us[0] / us[1], host_us[0], host_us[1]);
      std::fflush(stdout);
    }
  }

 private:
  void reduce(size_t r, size_t bytes) {
    auto* base = static_cast<unsigned char*>(buffers_[r]);
    MUST(ncclAllReduce(base, base + kLargest, bytes / 2, ncclBfloat16, ncclSum, node_.comms[r],
                       node_.streams[r]));
  }

  void row(bool on, const char* mode, size_t bytes, double us) {
    results_.add({{"side", on ? "onehop" : "nccl"},
                  {"plan", "pinned"},
                  {"method", on ? "one-shot" : ""},
                  {"ranks", node_.size()},
                  {"processes", 1},
                  {"bytes", bytes},
                  {"type", "bfloat16"},
                  {"op", "sum"},
                  {"mode", mode},
                  {"in_place", false},
                  {"us", us}});
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
  const LoadedOnehop& onehop_;
  Results& results_;
  std::vector<void*> buffers_;
};

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  alarm(300);
  if (argc < 4) fail("usage: nccl-bench LINKS OUT.json RANKS...");
  int version = 0;
  MUST(ncclGetVersion(&version));
  Results results("onehop and stock NCCL side by side, all ranks in one process", argc, argv, argv[1],
                  version);
  for (int i = 3; i < argc; ++i) {
    NcclNode warm_up(2);  // loads the plugin, so that it can be found
    const LoadedOnehop onehop;
    if (!onehop.found()) fail("onehop is not loaded (NCCL_NET_PLUGIN)");
    Bench(std::atoi(argv[i]), onehop, results).run();
    results.write(argv[2]);
  }
}
