#include <chrono>
#include <functional>
#include <thread>

#include "test/gpu/life/device_work.hpp"

namespace onehop::test {
namespace {

/// What is captured stays for the graph's replays, and is never freed.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  struct Work {
    std::function<void()> run;
    bool captured;
  };
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (const cudaError_t error = cudaStreamIsCapturing(stream, &status); error != cudaSuccess) return error;
  const auto run = [](void* data) {
    auto* of = static_cast<Work*>(data);
    of->run();
    if (!of->captured) delete of;
  };
  return cudaLaunchHostFunc(stream, run, new Work{std::move(work), status != cudaStreamCaptureStatusNone});
}

uint32_t value_of(Round round) {
  return round == nullptr ? 0 : *round;
}

void note_wrong(Tally* tally, uint64_t index, uint64_t got, uint64_t wanted, uint64_t tag) {
  if (tally->wrong++ != 0) return;
  tally->index = index;
  tally->got = got;
  tally->wanted = wanted;
  tally->tag = tag;
}

}  // namespace

cudaError_t wait_ns(uint64_t nanoseconds, cudaStream_t stream) {
  return enqueue(stream, [=] { std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds)); });
}

cudaError_t fill(const Pattern& p, const Buffers& b, Round round, uint64_t delay_ns, cudaStream_t stream) {
  return enqueue(stream, [=] {
    if (delay_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay_ns));
    const uint32_t size = size_of(p.type);
    std::memset(static_cast<unsigned char*>(b.out) - kGuard, kGuardByte, b.received * size + 2 * kGuard);
    for (size_t i = 0; i < b.sent; ++i)
      store_element(b.in, size, i, sent_bits(p, p.rank, value_of(round), i));
  });
}

cudaError_t check(const Pattern& p, const Buffers& b, Holds holds, size_t block, size_t first, Round round,
                  Tally* tally, uint64_t tag, cudaStream_t stream) {
  return enqueue(stream, [=] {
    const uint32_t size = size_of(p.type);
    if (b.in != b.out) std::memset(b.in, kGuardByte, b.sent * size);
    const auto* out = static_cast<const unsigned char*>(b.out);
    for (size_t i = 0; i < kGuard; ++i) {
      const unsigned char before = *(out - 1 - i), behind = out[b.received * size + i];
      if (before != kGuardByte) note_wrong(tally, ~uint64_t{0} - i, before, kGuardByte, tag);
      if (behind != kGuardByte) note_wrong(tally, b.received + i, behind, kGuardByte, tag);
    }
    tally->checked += b.received;
    for (size_t i = 0; i < b.received; ++i) {
      const uint64_t got = load_element(out, size, i);
      if (p.random) {
        tally->hash += mixed(got + mixed(i + tag * 0x9E3779B97F4A7C15u));
        continue;
      }
      const uint64_t wanted = held_bits(p, holds, block, value_of(round), first + i);
      if (got != wanted) note_wrong(tally, i, got, wanted, tag);
    }
  });
}

cudaError_t advance(uint32_t* round, cudaStream_t stream) {
  return enqueue(stream, [=] { ++*round; });
}

cudaError_t note(uint32_t* place, uint32_t number, cudaStream_t stream) {
  return enqueue(stream, [=] { *static_cast<volatile uint32_t*>(place) = number; });
}

cudaError_t count_down(unsigned long long, uint32_t*, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace onehop::test
