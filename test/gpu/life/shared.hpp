// The memory that the processes of one job and their runner share: how ranks meet and get NCCL's ids without
// NCCL, and what they tell the runner.
#pragma once

#include <nccl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace onehop::test {

inline double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Shared {
  static constexpr int kRanks = 16, kIds = 1024, kFigures = 256, kNotes = 256;

  std::atomic<uint32_t> arrived{0};  ///< at any of the meetings, all of them together
  std::atomic<uint32_t> stop{0};     ///< rank 0's word to the others, read behind a meeting
  std::atomic<uint64_t> killed_at_us{0};

  struct Id {
    std::atomic<uint32_t> there{0};
    ncclUniqueId id;
  } ids[kIds];

  /// What the runner must know of a process while it lives.
  struct Process {
    std::atomic<uint32_t> wants_signal{0};  ///< it waits for the runner's SIGTERM
    std::atomic<uint64_t> leaves_at_us{0};  ///< when it began to exit
  } processes[kRanks];
  char steps[kRanks][64] = {};  ///< what each rank is doing, for the report of a job that hangs

  struct Figure {
    char name[40];
    double value;
  } figures[kFigures];
  std::atomic<uint32_t> figure_count{0};
  char notes[kNotes][200] = {};
  std::atomic<uint32_t> note_count{0};

  static constexpr const char* kDescriptor = "ONEHOP_LIFE_SHARED";

  static Shared* map(int descriptor) {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
  }

  void note(const std::string& text) {
    const uint32_t at = note_count.fetch_add(1);
    if (at < kNotes) std::snprintf(notes[at], sizeof(notes[at]), "%s", text.c_str());
  }
  void figure(const char* name, double value) {
    const uint32_t at = figure_count.fetch_add(1);
    if (at >= kFigures) return;
    std::snprintf(figures[at].name, sizeof(figures[at].name), "%s", name);
    figures[at].value = value;
  }
};

inline uint64_t now_us() {
  return static_cast<uint64_t>(now_s() * 1e6);
}

}  // namespace onehop::test
