// What a rank of the soak put on its streams, and how far the GPU came: for the report of where it got stuck.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>

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
    MUST(cudaHostAlloc(reinterpret_cast<void**>(&noted_), 2 * sizeof(*noted_), cudaHostAllocMapped));
    noted_[0] = noted_[1] = 0;
  }
  TracedStream(const TracedStream&) = delete;
  ~TracedStream() { (void)cudaFreeHost(noted_); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { stream_.synchronize(); }

  /// Behind the work's own launches; never within a capture.
  void enqueued(const Work& work) {
    const uint32_t number = issued_.load(std::memory_order_relaxed) + 1;
    works_[number % kKept] = work;
    MUST(note(&noted_[0], number, stream_));
    issued_.store(number, std::memory_order_release);
  }

  /// Within a capture: a replay has come to this step of its graph.
  void captured(uint32_t step) { MUST(note(&noted_[1], step, stream_)); }
  /// What the next graph holds.
  void describe(std::string graph) { graph_ = std::move(graph); }

  /// By another thread, while the rank waits.
  void print(const char* name) const {
    const volatile uint32_t* noted = noted_;
    const uint32_t issued = issued_.load(std::memory_order_acquire), done = noted[0];
    std::printf("    %s: %u of %u works are done", name, done, issued);
    if (!graph_.empty()) std::printf("; step %u of the graph was the last (%s)", noted[1], graph_.c_str());
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
  uint32_t* noted_ = nullptr;  ///< the work, and the step of a graph, that were the last
  std::string graph_;
  std::atomic<uint32_t> issued_{0};
  std::array<Work, kKept> works_;
};

}  // namespace onehop::test
