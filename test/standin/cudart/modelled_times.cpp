#include "test/standin/cudart/modelled_times.hpp"

#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "test/standin/cudart/devices.hpp"
#include "test/standin/cudart/memory.hpp"
#include "test/standin/fabric.hpp"

namespace onehop::standin {
namespace {

/// The state of this process. Never destroyed: the threads of streams outlive main().
struct Model {
  const Fabric* fabric = nullptr;
  double noise = 0;
  std::mutex mutex;
  std::mt19937_64 random;
  std::map<cudaStream_t, double> clocks;
  struct Owner {
    size_t bytes;
    int physical;
  };
  std::map<const unsigned char*, Owner> owners;

  Model() {
    const char* const setting = std::getenv("ONEHOP_STANDIN_FABRIC");
    if (setting == nullptr) return;
    const std::string text = setting;
    const size_t colon = text.find(':');
    fabric = find_fabric(text.substr(0, colon));
    if (fabric == nullptr) std::abort();  // a test that would test nothing
    if (colon == std::string::npos) return;
    char* end = nullptr;
    noise = std::strtod(text.c_str() + colon + 1, &end);
    if (*end == ':') random.seed(std::strtoul(end + 1, nullptr, 10) * 64 + physical_device(0));
  }

  void put_forward(cudaStream_t stream, double us) {
    const std::lock_guard guard(mutex);
    std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
    clocks[stream] += us * off(random);
  }

  /// Rank of the model whose memory this is.
  uint32_t rank_of(const unsigned char* memory) {
    {
      const std::lock_guard guard(mutex);
      const auto after = owners.upper_bound(memory);
      if (after != owners.begin()) {
        const auto& [base, owner] = *std::prev(after);
        if (memory < base + owner.bytes) return static_cast<uint32_t>(owner.physical);
      }
    }
    const std::optional<MemoryInfo> info = find_memory(memory);
    return static_cast<uint32_t>(physical_device(info ? info->device : 0));
  }
};

Model& model() {
  static auto* const the_model = new Model;
  return *the_model;
}

}  // namespace

bool models_times() {
  return model().fabric != nullptr;
}

void note_owner(const void* memory, size_t bytes, int physical) {
  const std::lock_guard guard(model().mutex);
  model().owners[static_cast<const unsigned char*>(memory)] = {bytes, physical};
}

void forget_owner(const void* memory) {
  const std::lock_guard guard(model().mutex);
  model().owners.erase(static_cast<const unsigned char*>(memory));
}

void spend(cudaStream_t stream, const CommView& comm, const Operation& operation) {
  const Fabric* const f = model().fabric;
  if (f == nullptr) return;
  const double bytes = static_cast<double>(operation.count * element_size(operation.element));
  if (comm.ranks == f->ranks) return model().put_forward(stream, time_of(*f, operation.method, bytes));
  const uint32_t me = model().rank_of(comm.own);
  const uint32_t peer = model().rank_of(static_cast<const CommView&>(comm).staging(1 - comm.rank));
  model().put_forward(stream, time_of_pair(*f, me, peer, !is_pull(operation.method), bytes, 1));
}

void spend_nccl(cudaStream_t stream, size_t bytes) {
  if (const Fabric* const f = model().fabric)
    model().put_forward(stream, time_of(*f, std::nullopt, static_cast<double>(bytes)));
}

double clock_of(cudaStream_t stream) {
  const std::lock_guard guard(model().mutex);
  return model().clocks[stream];
}

}  // namespace onehop::standin

/// For the stand-in libnccl.
extern "C" void onehop_standin_spend_nccl(cudaStream_t stream, size_t bytes) {
  onehop::standin::spend_nccl(stream, bytes);
}
