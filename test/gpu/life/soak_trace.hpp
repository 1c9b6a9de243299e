// What a rank of the soak put on its streams, and how far the GPU came: for the report of where it got stuck.
#pragma once

#include <array>
#include <atomic>

#include "test/gpu/life/rank.hpp"

namespace onehop::test {

/// A stream whose works are numbered. A work's last step on the GPU writes its number to host memory.
class TracedStream {
 public:
  struct Work {
    const char* what = "";
    uint32_t communicator = 0;
    ncclDataType_t type = ncclFloat32;
    size_t bytes = 0;
  };

  TracedStream() {
    MUST(cudaHostAlloc(reinterpret_cast<void**>(&done_), sizeof(*done_), cudaHostAllocMapped));
  }
  TracedStream(const TracedStream&) = delete;
  ~TracedStream() { (void)cudaFreeHost(done_); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { stream_.synchronize(); }

  /// Behind the work's own launches; never within a capture.
  void enqueued(const Work& work) {
    const uint32_t number = issued_.load(std::memory_order_relaxed) + 1;
    works_[number % kKept] = work;
    MUST(note(done_, number, stream_));
    issued_.store(number, std::memory_order_release);
  }

  /// By another thread, while the rank waits.
  void print(const char* name) const {
    const uint32_t issued = issued_.load(std::memory_order_acquire),
                   done = *const_cast<const volatile uint32_t*>(done_);
    std::printf("    %s: %u of %u works are done", name, done, issued);
    for (uint32_t next = done + 1; next <= std::min(issued, done + 4); ++next) {
      const Work& work = works_[next % kKept];
      std::printf("; %s on communicator %u, %zu bytes of type %d", work.what, work.communicator, work.bytes,
                  static_cast<int>(work.type));
    }
    std::printf("\n");
  }

 private:
  static constexpr uint32_t kKept = 256;  ///< more than are ever under way

  Stream stream_;
  uint32_t* done_ = nullptr;
  std::atomic<uint32_t> issued_{0};
  std::array<Work, kKept> works_;
};

}  // namespace onehop::test
