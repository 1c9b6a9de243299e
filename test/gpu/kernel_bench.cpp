// Kernel time per call, without NCCL: the product's staging and kernels, all ranks in this process. With
// `sweep`, every geometry.
//
//   kernel-bench LINKS OUT.json [sweep] RANKS...
#include <algorithm>
#include <cstring>

#include "kernels/cuda/launch.hpp"
#include "test/gpu/delay.hpp"
#include "test/gpu/local_ranks.hpp"
#include "test/gpu/results.hpp"

namespace onehop::test {
namespace {

constexpr int kCallsPerGraph = 100, kReplays = 15;
constexpr size_t kLargest = 512 << 10;

class KernelBench {
 public:
  explicit KernelBench(int ranks)
      : node_(ranks, std::min(kLargest, kLargest * 4 / static_cast<size_t>(ranks))), buffers_(node_.size()) {
    for (size_t r = 0; r < node_.size(); ++r) {
      const CurrentDevice scope(*cuda_device(), node_[r].device);
      (void)cudaMalloc(reinterpret_cast<void**>(&buffers_[r]), 2 * kLargest);
      (void)cudaMemset(buffers_[r], 0, 2 * kLargest);
    }
  }

  /// As nccl-bench measures it. `ordered`: with the nodes that order calls across launches.
  double graph_us(size_t bytes, const Geometry& geometry, bool ordered) {
    std::vector<cudaGraphExec_t> graphs(node_.size());
    std::vector<cudaEvent_t> start(node_.size()), stop(node_.size());
    for (size_t r = 0; r < node_.size(); ++r) {
      const CurrentDevice scope(*cuda_device(), node_[r].device);
      cudaStream_t stream = node_[r].stream;
      const Operation operation{buffers_[r], buffers_[r] + kLargest, bytes / 2, Element::kBfloat16};
      cudaGraph_t graph;
      (void)cudaEventCreate(&start[r]);
      (void)cudaEventCreate(&stop[r]);
      (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
      for (int k = 0; k < kCallsPerGraph; ++k) {
        if (ordered)
          node_[r].all_reduce(operation);
        else
          (void)launch_one_shot(node_[r].staging->view(), operation, geometry, stream);
      }
      (void)cudaStreamEndCapture(stream, &graph);
      (void)cudaGraphInstantiate(&graphs[r], graph, 0);
      (void)cudaGraphUpload(graphs[r], stream);
      (void)cudaGraphDestroy(graph);
    }
    std::vector<float> times;
    for (int replay = 0; replay < kReplays; ++replay) {
      node_.synchronize();
      for (size_t r = 0; r < node_.size(); ++r) {
        const CurrentDevice scope(*cuda_device(), node_[r].device);
        (void)delay(300'000, node_[r].stream);
        (void)cudaEventRecord(start[r], node_[r].stream);
        (void)cudaGraphLaunch(graphs[r], node_[r].stream);
        (void)cudaEventRecord(stop[r], node_[r].stream);
      }
      node_.synchronize();
      float shortest = 1e9F;
      for (size_t r = 0; r < node_.size(); ++r) {
        float ms = 0;
        (void)cudaEventElapsedTime(&ms, start[r], stop[r]);
        shortest = std::min(shortest, ms);
      }
      if (replay >= 3) times.push_back(shortest);
    }
    for (size_t r = 0; r < node_.size(); ++r) {
      (void)cudaGraphExecDestroy(graphs[r]);
      (void)cudaEventDestroy(start[r]);
      (void)cudaEventDestroy(stop[r]);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1000.0 / kCallsPerGraph;
  }

 private:
  LocalRanks node_;
  std::vector<unsigned char*> buffers_;
};

uint32_t packs_of(size_t bytes) {
  return static_cast<uint32_t>(bytes / sizeof(Pack));
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop;
  using namespace onehop::test;
  alarm(300);
  if (argc < 4) return 2;
  const bool sweep = std::strcmp(argv[3], "sweep") == 0;
  Results results("kernel time, one-shot push, all ranks in one process", argc, argv, argv[1], 0);
  for (int i = sweep ? 4 : 3; i < argc; ++i) {
    const int ranks = std::atoi(argv[i]);
    KernelBench bench(ranks);
    const auto add = [&](size_t bytes, const char* mode, const Geometry& g, double us) {
      results.add({{"side", "onehop"},
                   {"plan", "pinned"},
                   {"method", "one-shot"},
                   {"ranks", ranks},
                   {"processes", 1},
                   {"bytes", bytes},
                   {"type", "bfloat16"},
                   {"op", "sum"},
                   {"mode", mode},
                   {"in_place", false},
                   {"blocks", g.blocks},
                   {"workers", g.workers},
                   {"us", us}});
    };
    for (const size_t bytes : {64, 1024, 4096, 16384, 43008, 65536}) {
      const Geometry chosen = geometry_for(packs_of(bytes));
      const double bare = bench.graph_us(bytes, chosen, false), ordered = bench.graph_us(bytes, chosen, true);
      add(bytes, "graph", chosen, bare);
      add(bytes, "graph, ordered across launches", chosen, ordered);
      std::printf("%d ranks %6zu B  %2u x %3u: %6.2f us, ordered %6.2f us", ranks, bytes, chosen.blocks,
                  chosen.workers, bare, ordered);
      if (sweep) {
        double best = 1e9;
        Geometry best_geometry;
        for (uint32_t workers : {64u, 128u, 256u})
          for (uint32_t blocks : {1u, 2u, 4u, 8u, 11u, 16u, 32u}) {
            if ((blocks - 1) * workers >= packs_of(bytes) || blocks * ranks > 128) continue;
            const double us = bench.graph_us(bytes, {blocks, workers}, false);
            add(bytes, "graph", {blocks, workers}, us);
            if (us < best) best = us, best_geometry = {blocks, workers};
          }
        std::printf("   best %2u x %3u: %6.2f us", best_geometry.blocks, best_geometry.workers, best);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
    results.write(argv[2]);
  }
}
