// Processes that drive several GPUs.
#include "test/node/rank/device.hpp"

namespace onehop::node {
namespace {

/// One GPU of this process: rank `rank` of the communicator.
struct Gpu {
  Gpu(int of_device, int of_rank) : device(of_device), rank(of_rank) {
    current();
    stream = std::make_unique<Stream>();
    data = std::make_unique<Words>(1000);
  }
  void current() const { MUST(cudaSetDevice(device)); }
  void fill(uint32_t base) const {
    current();
    data->fill(base + static_cast<uint32_t>(rank));
  }
  void check(uint32_t base, int ranks) const {
    current();
    stream->synchronize();
    const auto n = static_cast<uint32_t>(ranks);
    must(data->holds(base * n + n * (n - 1) / 2), "wrong sum on device " + std::to_string(device));
  }
  const int device, rank;
  ncclComm_t comm = nullptr;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Words> data;
};

using Gpus = std::vector<std::unique_ptr<Gpu>>;

/// Steps as nccl-tests does them with -g: each in a group.
void reduce_in_groups(Rank& self, const Gpus& gpus, int ranks) {
  for (uint32_t step = 1; step <= 5; ++step) {
    for (const auto& gpu : gpus) gpu->fill(step);
    MUST(cudaSetDevice(0));
    MUST(ncclGroupStart());
    for (const auto& gpu : gpus) {
      if (step % 2 == 0) gpu->current();  // a program need not: the communicator knows its device
      MUST(sum(*gpu->data, *gpu->data, gpu->comm, *gpu->stream));
    }
    int before = -1, after = -1;
    MUST(cudaGetDevice(&before));
    MUST(ncclGroupEnd());
    MUST(cudaGetDevice(&after));
    must(before == after, "the current device changed");
    for (const auto& gpu : gpus) gpu->check(step, ranks);
    self.expect("taken", gpus.size());
  }
}

Gpus make_all(int count) {
  std::vector<ncclComm_t> comms(static_cast<size_t>(count));
  MUST(ncclCommInitAll(comms.data(), count, nullptr));
  Gpus gpus;
  for (int d = 0; d < count; ++d) {
    gpus.push_back(std::make_unique<Gpu>(d, d));
    gpus.back()->comm = comms[static_cast<size_t>(d)];
  }
  return gpus;
}

void destroy(const Gpus& gpus) {
  for (const auto& gpu : gpus) MUST(ncclCommDestroy(gpu->comm));
}

}  // namespace

/// One process, one thread. Argument: GPUs.
SCENARIO(one_thread) {
  const Gpus gpus = make_all(std::stoi(self.argument));
  reduce_in_groups(self, gpus, std::stoi(self.argument));
  destroy(gpus);
}

/// One process, a thread per rank; each thread has groups of its own.
SCENARIO(threads) {
  const int ranks = std::stoi(self.argument);
  const Gpus gpus = make_all(ranks);
  std::vector<std::thread> threads;
  for (const auto& gpu : gpus)
    threads.emplace_back([&gpu, ranks] {
      for (uint32_t step = 1; step <= 20; ++step) {
        gpu->fill(step);
        const bool grouped = step % 3 != 1;
        if (grouped) MUST(ncclGroupStart());
        MUST(sum(*gpu->data, *gpu->data, gpu->comm, *gpu->stream));
        if (grouped) MUST(ncclGroupEnd());
        gpu->check(step, ranks);
      }
      MUST(ncclCommDestroy(gpu->comm));
    });
  for (std::thread& thread : threads) thread.join();
  self.expect("taken", 20 * gpus.size());
}

/// Several processes with two GPUs each: some peers are in this process, some are not.
SCENARIO(two_each) {
  const ncclUniqueId id = self.id("world");
  Gpus gpus;
  MUST(ncclGroupStart());
  for (int d = 0; d < 2; ++d) {
    gpus.push_back(std::make_unique<Gpu>(2 * self.rank + d, 2 * self.rank + d));
    MUST(ncclCommInitRank(&gpus.back()->comm, 2 * self.ranks, id, gpus.back()->rank));
  }
  MUST(ncclGroupEnd());
  reduce_in_groups(self, gpus, 2 * self.ranks);
  destroy(gpus);
}

}  // namespace onehop::node
