#include "tools/onehop/measure_pairs.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace onehop::tool {
namespace {

constexpr size_t kLarge = 64 << 20, kSmall = 8;
constexpr int kLargeCopies = 5, kSmallCopies = 200;

using DevicePointer = unsigned long long;

/// One GPU with its context and memory.
class Gpu {
 public:
  Gpu(const Library& cuda, int ordinal) : cuda_(cuda) {
    int device = 0;
    ready_ = cuda.ok("cuDeviceGet", &device, ordinal) &&
             cuda.ok("cuDevicePrimaryCtxRetain", &context_, device) && enter() &&
             cuda.ok("cuMemAlloc_v2", &memory_, kLarge) && cuda.ok("cuStreamCreate", &stream_, 1u) &&
             cuda.ok("cuEventCreate", &begin_, 0u) && cuda.ok("cuEventCreate", &end_, 0u);
  }
  bool ready() const { return ready_; }
  bool enter() const { return cuda_.ok("cuCtxSetCurrent", context_); }
  bool reach(const Gpu& peer) const {
    return enter() && cuda_.ok("cuCtxEnablePeerAccess", peer.context_, 0u);
  }
  void leave(const Gpu& peer) const {
    if (enter()) (void)cuda_.ok("cuCtxDisablePeerAccess", peer.context_);
  }
  bool write(const std::vector<uint32_t>& data) const {
    return enter() &&
           cuda_.ok("cuMemcpyHtoD_v2", memory_, static_cast<const void*>(data.data()), data.size() * 4);
  }
  bool read(std::vector<uint32_t>& data) const {
    return enter() && cuda_.ok("cuMemcpyDtoH_v2", static_cast<void*>(data.data()), memory_, data.size() * 4);
  }
  /// Milliseconds for `count` copies to `peer`, one after the other; negative on an error.
  double copy(const Gpu& peer, size_t bytes, int count) const {
    if (!enter() || !cuda_.ok("cuEventRecord", begin_, stream_)) return -1;
    for (int i = 0; i < count; ++i)
      if (!cuda_.ok("cuMemcpyPeerAsync", peer.memory_, peer.context_, memory_, context_, bytes, stream_))
        return -1;
    float milliseconds = -1;
    if (!cuda_.ok("cuEventRecord", end_, stream_) || !cuda_.ok("cuStreamSynchronize", stream_) ||
        !cuda_.ok("cuEventElapsedTime", &milliseconds, begin_, end_))
      return -1;
    return milliseconds;
  }

 private:
  const Library& cuda_;
  void *context_ = nullptr, *stream_ = nullptr, *begin_ = nullptr, *end_ = nullptr;
  DevicePointer memory_ = 0;
  bool ready_ = false;
};

/// Never zero, and another for each pair: memory that was never written must not pass.
std::vector<uint32_t> pattern(uint32_t seed) {
  std::vector<uint32_t> data(kLarge / 4);
  for (uint32_t& word : data) word = (seed = seed * 1664525 + 1013904223) | 1;
  return data;
}

std::string measure(const Gpu& from, const Gpu& to, PairFacts& pair) {
  const std::vector<uint32_t> sent = pattern(static_cast<uint32_t>(pair.from * 64 + pair.to + 1));
  std::vector<uint32_t> received(sent.size(), 0);
  if (!from.write(sent) || !to.write(received)) return "the GPUs' memory cannot be written";
  if (from.copy(to, kLarge, 1) < 0) return "copying failed";
  // Read by the memory's owner: a writer may see what it wrote although it never arrived.
  if (!to.read(received)) return "the GPU's memory cannot be read";
  if (received != sent) return "wrong data";
  const double large = from.copy(to, kLarge, kLargeCopies), small = from.copy(to, kSmall, kSmallCopies);
  if (large <= 0 || small <= 0) return "copying failed";
  pair.copy_gb_s = static_cast<double>(kLarge) * kLargeCopies / large / 1e6;
  pair.latency_us = small * 1000 / kSmallCopies;
  return "right";
}

}  // namespace

void measure_pairs(const CudaDriver& cuda, const std::vector<int>& ordinals, std::vector<PairFacts>& pairs) {
  std::vector<std::unique_ptr<Gpu>> gpus;
  gpus.reserve(ordinals.size());
  for (const int ordinal : ordinals)
    gpus.push_back(ordinal < 0 ? nullptr : std::make_unique<Gpu>(cuda.library(), ordinal));
  for (PairFacts& pair : pairs) {
    const Gpu *from = gpus[static_cast<size_t>(pair.from)].get(),
              *to = gpus[static_cast<size_t>(pair.to)].get();
    if (from == nullptr || to == nullptr) continue;
    if (!from->ready() || !to->ready()) {
      pair.measured = "a GPU has no memory left, or cannot be used";
      continue;
    }
    pair.direct = from->reach(*to);
    pair.measured = measure(*from, *to, pair);
    if (pair.direct) from->leave(*to);
  }
}

}  // namespace onehop::tool
