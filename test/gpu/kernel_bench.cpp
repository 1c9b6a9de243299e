// Kernel time per call, without NCCL: the product's staging and kernels, all ranks in this process.
//
//   kernel-bench LINKS OUT.json [OPTION]... RANKS...
//
//   methods=M,M...       of oneshot-push, twoshot-push, oneshot-staged, twoshot-staged, oneshot-pull,
//   twoshot-pull,
//                        islands; all, or in host memory the pull ones
//   staging=peer|host    where staging memory is
//   up-to=BYTES          the largest size, 1 MiB if it is not given
//   ordered              also with the graph nodes that order calls across launches
//   sweep                every geometry, not only geometry_for()
//
// The geometry has as many blocks as can run at once with those of the other ranks of a GPU, and no more.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "test/gpu/delay.hpp"
#include "test/gpu/local_ranks.hpp"
#include "test/gpu/results.hpp"
#include "test/gpu/traffic.hpp"

namespace onehop::test {
namespace {

constexpr int kCallsPerGraph = 100;
constexpr size_t kSizes[] = {64,       1 << 10,   4 << 10,   16 << 10,  42 << 10,
                             64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr uint32_t kSweptBlocks[] = {1, 2, 3, 4, 8, 11, 16, 32},
                   kSweptWorkers[] = {32, 64, 96, 128, 192, 256};
constexpr uint32_t kMostRounds = 32;  ///< packs for one thread: slower geometries are not worth the time
constexpr const char* kMethodNames[kMethods] = {"oneshot-push",   "twoshot-push", "oneshot-staged",
                                                "twoshot-staged", "oneshot-pull", "twoshot-pull",
                                                "islands"};

struct Options {
  std::vector<Method> methods;
  StagingKind kind = StagingKind::kPeer;
  size_t up_to = 1 << 20;
  bool ordered = false, sweep = false;
  std::vector<uint32_t> ranks;
};

[[noreturn]] void usage(const std::string& wrong) {
  std::fprintf(stderr,
               "%s\nusage: kernel-bench LINKS OUT.json [methods=M,M] [staging=peer|host] [up-to=BYTES] "
               "[ordered] [sweep] RANKS...\n",
               wrong.c_str());
  std::exit(2);
}

Method method_of(const std::string& name) {
  for (uint32_t m = 0; m < kMethods; ++m)
    if (name == kMethodNames[m]) return static_cast<Method>(m);
  usage("no method: " + name);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i], value = word.substr(word.find('=') + 1);
    if (word == "ordered") {
      options.ordered = true;
    } else if (word == "sweep") {
      options.sweep = true;
    } else if (word == "staging=host" || word == "staging=peer") {
      options.kind = value == "host" ? StagingKind::kHost : StagingKind::kPeer;
    } else if (word.rfind("up-to=", 0) == 0) {
      options.up_to = std::strtoul(value.c_str(), nullptr, 10);
    } else if (word.rfind("methods=", 0) == 0) {
      std::istringstream names(value);
      for (std::string name; std::getline(names, name, ',');) options.methods.push_back(method_of(name));
    } else {
      options.ranks.push_back(static_cast<uint32_t>(std::atoi(argv[i])));
      if (options.ranks.back() < 2 || options.ranks.back() > kMaxRanks) usage("no number of ranks: " + word);
    }
  }
  if (options.ranks.empty()) usage("no ranks");
  if (options.methods.empty())
    for (uint32_t m = 0; m < kMethods; ++m)
      if (options.kind == StagingKind::kPeer || is_pull(static_cast<Method>(m)))
        options.methods.push_back(static_cast<Method>(m));
  return options;
}

uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

/// Enough memory for each method to carry the largest size in one operation.
NodeOptions node_options(const Options& options, uint32_t ranks) {
  NodeOptions node;
  node.ranks = ranks;
  node.kind = options.kind;
  node.inbox = node.outbox = 0;
  const auto packs = static_cast<uint32_t>(options.up_to / sizeof(Pack));
  const Islands islands = equal_islands(ranks, 2);
  for (const Method method : options.methods) {
    uint32_t& memory = is_pull(method) ? node.outbox : node.inbox;
    uint32_t places = packs;
    if (method == Method::kTwoShot || method == Method::kTwoShotStaged) places = 2 * ceil_div(packs, ranks);
    if (method == Method::kTwoShotPull) places = (ranks + 1) * ceil_div(packs, ranks);
    if (method == Method::kIslands)
      places = (2 + wide_packs(Element::kBfloat16) * (islands.runs - 1u)) * ceil_div(packs, islands.smallest);
    memory = std::max(memory, ceil_div(places, 8) * 8);
  }
  return node;
}

class KernelBench {
 public:
  KernelBench(const Options& options, uint32_t ranks)
      : options_(options), node_(node_options(options, ranks)), buffers_(ranks) {
    for (uint32_t r = 0; r < ranks; ++r) {
      const CurrentDevice scope(*cuda_device(), node_[r].device);
      cuda_ok(cudaMalloc(reinterpret_cast<void**>(&buffers_[r]), 2 * options.up_to));
      cuda_ok(cudaMemset(buffers_[r], 0, 2 * options.up_to));
      cuda_ok(cudaDeviceSynchronize());
    }
  }
  ~KernelBench() {
    for (uint32_t r = 0; r < buffers_.size(); ++r) {
      const CurrentDevice scope(*cuda_device(), node_[r].device);
      (void)cudaFree(buffers_[r]);
    }
  }
  KernelBench(const KernelBench&) = delete;
  KernelBench& operator=(const KernelBench&) = delete;

  Operation operation(uint32_t r, Method method, size_t bytes) const {
    return {buffers_[r], buffers_[r] + options_.up_to, bytes / 2, Element::kBfloat16, Reduction::kSum,
            method};
  }
  Rank& rank(uint32_t r) { return node_[r]; }
  uint32_t ranks_of_one_gpu() {
    return static_cast<uint32_t>(
        std::count_if(node_.begin(), node_.end(), [](const Rank& rank) { return rank.device == 0; }));
  }

  /// As nccl-bench measures it. `ordered`: with the nodes that order calls across launches.
  double graph_us(Method method, size_t bytes, const Geometry& geometry, bool ordered, int replays) {
    std::vector<cudaGraphExec_t> graphs(node_.size());
    std::vector<cudaEvent_t> start(node_.size()), stop(node_.size());
    for (uint32_t r = 0; r < node_.size(); ++r) {
      const CurrentDevice scope(*cuda_device(), node_[r].device);
      cudaStream_t stream = node_[r].stream;
      const Operation call = operation(r, method, bytes);
      cudaGraph_t graph = nullptr;
      cuda_ok(cudaEventCreate(&start[r]));
      cuda_ok(cudaEventCreate(&stop[r]));
      cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
      for (int k = 0; k < kCallsPerGraph; ++k) {
        if (ordered)
          node_[r].all_reduce(call);
        else
          cuda_ok(launch(node_[r].view(), call, geometry, stream));
      }
      cuda_ok(cudaStreamEndCapture(stream, &graph));
      cuda_ok(cudaGraphInstantiate(&graphs[r], graph, 0));
      cuda_ok(cudaGraphUpload(graphs[r], stream));
      cuda_ok(cudaGraphDestroy(graph));
    }
    std::vector<float> times;
    float all = 0;  // slow calls are measured less often
    for (int replay = 0; replay < replays && (all < 300 || times.size() < 3); ++replay) {
      node_.synchronize();
      for (uint32_t r = 0; r < node_.size(); ++r) {
        const CurrentDevice scope(*cuda_device(), node_[r].device);
        cuda_ok(delay(300'000, node_[r].stream));
        cuda_ok(cudaEventRecord(start[r], node_[r].stream));
        cuda_ok(cudaGraphLaunch(graphs[r], node_[r].stream));
        cuda_ok(cudaEventRecord(stop[r], node_[r].stream));
      }
      node_.synchronize();
      float shortest = 1e9F;
      for (uint32_t r = 0; r < node_.size(); ++r) {
        float ms = 0;
        cuda_ok(cudaEventElapsedTime(&ms, start[r], stop[r]));
        shortest = std::min(shortest, ms);
      }
      if (replay >= 2) times.push_back(shortest);
      all += shortest;
    }
    for (uint32_t r = 0; r < node_.size(); ++r) {
      cuda_ok(cudaGraphExecDestroy(graphs[r]));
      cuda_ok(cudaEventDestroy(start[r]));
      cuda_ok(cudaEventDestroy(stop[r]));
    }
    if (node_.any_stopped()) {
      std::fprintf(stderr, "%s, %zu bytes, %u x %u: a rank waited in vain\n", name_of(method), bytes,
                   geometry.blocks, geometry.workers);
      std::exit(1);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1000.0 / kCallsPerGraph;
  }

 private:
  const Options& options_;
  LocalRanks node_;
  std::vector<unsigned char*> buffers_;
};

/// One method, one size.
class Measurement {
 public:
  Measurement(KernelBench& bench, const Options& options, Method method, size_t bytes, Results& results)
      : bench_(bench), options_(options), method_(method), bytes_(bytes), results_(results) {}

  void run() {
    constexpr int kReplays = 15, kReplaysOfSweep = 8;
    const Rank& rank = bench_.rank(0);
    const Operation operation = bench_.operation(0, method_, bytes_);
    const Geometry chosen = rank.geometry(operation);
    const double us = bench_.graph_us(method_, bytes_, chosen, false, kReplays);
    add("graph", chosen, us);
    std::printf("%-15s %2zu ranks %8zu B  %2u x %3u: %8.2f us", name_of(method_), size_t{rank.view().ranks},
                bytes_, chosen.blocks, chosen.workers, us);
    if (options_.ordered) {
      const double ordered = bench_.graph_us(method_, bytes_, chosen, true, kReplays);
      add("graph, ordered across launches", chosen, ordered);
      std::printf(", ordered %8.2f us", ordered);
    }
    print_traffic(us);
    if (options_.sweep) {
      double best = us;
      Geometry best_geometry = chosen;
      const uint32_t items = items_of(method_, packs_of(operation), rank.view());
      for (const uint32_t workers : kSweptWorkers)
        for (const uint32_t blocks : kSweptBlocks) {
          if (blocks > rank.max_blocks || (blocks > 1 && (blocks - 1) * workers >= items)) continue;
          if (blocks == 1 && workers > 32 && workers / 2 >= items) continue;
          if (ceil_div(items, blocks * workers) > kMostRounds) continue;
          const double swept = bench_.graph_us(method_, bytes_, {blocks, workers}, false, kReplaysOfSweep);
          add("graph, sweep", {blocks, workers}, swept);
          if (swept < best) best = swept, best_geometry = {blocks, workers};
        }
      std::printf("   best %2u x %3u: %8.2f us, %4.1f%% less", best_geometry.blocks, best_geometry.workers,
                  best, (us - best) / us * 100);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  Traffic traffic_of_rank() {
    return traffic(method_, options_.kind, static_cast<double>(bytes_), bench_.rank(0).view(),
                   wide_packs(Element::kBfloat16));
  }

  void add(const char* mode, const Geometry& geometry, double us) {
    const Traffic moved = traffic_of_rank();
    results_.add({{"side", "onehop"},
                  {"plan", "pinned"},
                  {"method", name_of(method_)},
                  {"staging", name_of(options_.kind)},
                  {"ranks", bench_.rank(0).view().ranks},
                  {"processes", 1},
                  {"bytes", bytes_},
                  {"type", "bfloat16"},
                  {"op", "sum"},
                  {"mode", mode},
                  {"in_place", false},
                  {"blocks", geometry.blocks},
                  {"workers", geometry.workers},
                  {"us", us},
                  {"rank_written", moved.written},
                  {"rank_read", moved.read},
                  {"ranks_of_one_gpu", bench_.ranks_of_one_gpu()}});
  }

  /// In host memory all ranks of a GPU share its link.
  void print_traffic(double us) {
    const Traffic moved = traffic_of_rank();
    const double ranks = bench_.ranks_of_one_gpu();
    if (options_.kind == StagingKind::kHost)
      std::printf("   over PCIe: rank %.0f B written, %.0f B read; GPU %.2f GB/s written, %.2f GB/s read",
                  moved.written, moved.read, moved.written * ranks / us * 1e-3,
                  moved.read * ranks / us * 1e-3);
  }

  KernelBench& bench_;
  const Options& options_;
  const Method method_;
  const size_t bytes_;
  Results& results_;
};

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop;
  using namespace onehop::test;
  alarm(590);
  if (argc < 4) usage("too few arguments");
  const Options options = parse(argc, argv);
  Results results(
      std::string("kernel time, staging in ") + name_of(options.kind) + ", all ranks in one process", argc,
      argv, argv[1], 0);
  for (const uint32_t ranks : options.ranks) {
    KernelBench bench(options, ranks);
    for (const Method method : options.methods)
      for (const size_t bytes : kSizes) {
        if (bytes > options.up_to) continue;
        if (bytes / 2 > bench.rank(0).limit(method, Element::kBfloat16)) continue;
        Measurement(bench, options, method, bytes, results).run();
      }
    results.write(argv[2]);
  }
  return testing::UnitTest::GetInstance()->Passed() ? 0 : 1;
}
