// What the first all-reduce of a communicator takes, with stock NCCL, which connects for it, and with onehop,
// which sets up for it as well: the same program by turns without the plugin and with it, in one call. All
// ranks are in one process, one thread each, several on one GPU where there are fewer GPUs. The first
// communicator of a process also pays for what is loaded once. And what onehop's hello would take as another
// collective: NCCL connects other channels for sends than for an all-gather.
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

constexpr size_t kRecord = 256;  // bytes, of onehop's hello

using Exchange = void (*)(const NcclNode&, size_t rank, char* records);

/// As onehop does it.
void all_gather(const NcclNode& node, size_t rank, char* records) {
  MUST(ncclAllGather(records + rank * kRecord, records, kRecord, ncclInt8, node.comms[rank],
                     node.streams[rank]));
}

/// Only neighbours are connected: each passes on what came last.
void ring_of_sends(const NcclNode& node, size_t rank, char* records) {
  const size_t ranks = node.size(), next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (size_t step = 0; step + 1 < ranks; ++step) {
    char* has = records + (rank + ranks - step) % ranks * kRecord;
    char* comes = records + (previous + ranks - step) % ranks * kRecord;
    MUST(ncclGroupStart());
    MUST(ncclSend(has, kRecord, ncclInt8, static_cast<int>(next), node.comms[rank], node.streams[rank]));
    MUST(
        ncclRecv(comes, kRecord, ncclInt8, static_cast<int>(previous), node.comms[rank], node.streams[rank]));
    MUST(ncclGroupEnd());
  }
}

size_t free_memory() {
  size_t free = 0, all = 0;
  MUST(cudaMemGetInfo(&free, &all));
  return free;
}

/// The first collective of a communicator as an exchange of records, and the GPU memory that NCCL took for
/// it.
void measure_exchange(int ranks, const char* name, Exchange exchange, Results& results) {
  NcclNode node(ranks);
  std::vector<char*> records(node.size());
  for (size_t r = 0; r < node.size(); ++r) {
    MUST(cudaSetDevice(node.devices[r]));
    MUST(cudaHostAlloc(reinterpret_cast<void**>(&records[r]), node.size() * kRecord, cudaHostAllocDefault));
    std::memset(records[r] + r * kRecord, static_cast<int>(r + 1), kRecord);
  }
  const size_t before = free_memory();
  const double first = ms_of([&] {
    node.in_threads([&](size_t r) {
      exchange(node, r, records[r]);
      MUST(cudaStreamSynchronize(node.streams[r]));
    });
  });
  const double mib = static_cast<double>(before - free_memory()) / (1 << 20);
  for (char* of : records) {
    for (size_t at = 0; at < node.size() * kRecord; ++at)
      if (of[at] != static_cast<char>(at / kRecord + 1)) fail("a wrong record");
    MUST(cudaFreeHost(of));
  }
  results.add_to("exchanges",
                 {{"exchange", name}, {"ranks", ranks}, {"first_ms", first}, {"mib_of_last_gpu", mib}});
  std::printf("%s, %d ranks: %.1f ms, %.0f MiB on the last GPU\n", name, ranks, first, mib);
}

void measure_exchanges(int ranks, Results& results) {
  for (int nth = 0; nth < kCommunicators; ++nth) {
    measure_exchange(ranks, "all-gather", all_gather, results);
    measure_exchange(ranks, "ring of sends", ring_of_sends, results);
  }
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  alarm(120);
  return compare_sides(argc, argv, "the first all-reduce of a communicator, stock NCCL and onehop", kRounds,
                       [](int ranks, Results& results) {
                         for (int nth = 1; nth <= kCommunicators; ++nth) measure(ranks, nth, results);
                         if (!with_onehop()) measure_exchanges(ranks, results);
                       });
}
