// What the first all-reduce of a communicator takes, with stock NCCL, which connects for it, and with onehop,
// which sets up for it as well: the same program by turns without the plugin and with it, in one call. All
// ranks are in one process, one thread each, several on one GPU where there are fewer GPUs. The first
// communicator of a process also pays for what is loaded once.
//
//   NCCL_NET_PLUGIN=libnccl-net-onehop.so nccl-first-call LINKS OUT.json RANKS...
#include <chrono>

#include "test/gpu/sides.hpp"

namespace onehop::test {
namespace {

constexpr int kRounds = 2, kCommunicators = 3;
constexpr size_t kCount = 1024;

double ms_of(const std::function<void()>& part) {
  const auto start = std::chrono::steady_clock::now();
  part();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// One communicator, and how long its calls took until their results were there.
void measure(int ranks, int nth, Results& results) {
  NcclNode node(ranks);
  std::vector<float*> buffers(node.size());
  for (size_t r = 0; r < node.size(); ++r) {
    MUST(cudaSetDevice(node.devices[r]));
    MUST(cudaMalloc(reinterpret_cast<void**>(&buffers[r]), kCount * sizeof(float)));
    const std::vector<float> ones(kCount, 1);
    MUST(cudaMemcpy(buffers[r], ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  }
  const auto call = [&] {
    node.in_threads([&](size_t r) {
      MUST(ncclAllReduce(buffers[r], buffers[r], kCount, ncclFloat, ncclSum, node.comms[r], node.streams[r]));
      MUST(cudaStreamSynchronize(node.streams[r]));
    });
  };
  const double first = ms_of(call), second = ms_of(call);
  size_t wrong = 0;
  for (size_t r = 0; r < node.size(); ++r) {
    std::vector<float> sums(kCount);
    MUST(cudaSetDevice(node.devices[r]));
    MUST(cudaMemcpy(sums.data(), buffers[r], kCount * sizeof(float), cudaMemcpyDeviceToHost));
    for (const float sum : sums) wrong += sum != static_cast<float>(ranks * ranks);
    MUST(cudaFree(buffers[r]));
  }
  const char* side = with_onehop() ? "onehop" : "nccl";
  results.add_to("first_calls", {{"side", side},
                                 {"ranks", ranks},
                                 {"communicator", nth},
                                 {"first_ms", first},
                                 {"second_ms", second},
                                 {"wrong", wrong}});
  std::printf("%s, %d ranks, communicator %d: first call %.1f ms, second %.2f ms, %zu wrong\n", side, ranks,
              nth, first, second, wrong);
  if (wrong != 0) fail("wrong sums");
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  alarm(120);
  return compare_sides(argc, argv, "the first all-reduce of a communicator, stock NCCL and onehop", kRounds,
                       [](int ranks, Results& results) {
                         for (int nth = 1; nth <= kCommunicators; ++nth) measure(ranks, nth, results);
                       });
}
