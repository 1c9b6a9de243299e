// The memory that the ranks of a communicator share, and how they wait for each other in it.
//
// Everything starts as zeroes, so whoever makes the memory has nothing to prepare.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace onehop::standin {

inline constexpr int kMaxCommRanks = 16;
inline constexpr size_t kChunkBytes = 64 << 10;  ///< what a rank can publish in one step of a collective
inline constexpr size_t kPipeBytes = 32 << 10;

/// From one rank to another while communicators are made and split: one record at a time.
struct alignas(64) Mail {
  std::atomic<uint64_t> posted;  ///< records so far
  std::atomic<uint64_t> read;
  unsigned char record[112];
};

/// Collectives go in steps, counted from 1: each rank publishes a chunk, then reads everyone's. Two chunks
/// take turns.
struct alignas(64) Stage {
  std::atomic<uint64_t> published;  ///< steps that this rank has published
  std::atomic<uint64_t> consumed;   ///< steps that this rank has read from everyone
  uint64_t signature[2];            ///< of the operation that the chunk belongs to
};

/// From one rank to another: a ring of bytes. Counts never wrap.
struct alignas(64) Pipe {
  std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) unsigned char ring[kPipeBytes];
};

struct Segment {
  Mail mail[kMaxCommRanks][kMaxCommRanks];  ///< [from][to]
  Stage stage[kMaxCommRanks];
  alignas(64) unsigned char chunk[kMaxCommRanks][2][kChunkBytes];
  Pipe pipe[kMaxCommRanks][kMaxCommRanks];  ///< [from][to]
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// Waits politely: there may be many more ranks than cores.
class Backoff {
 public:
  void pause();

 private:
  int pauses_ = 0;
};

/// True: `ready()` came true. False: `stop` did first.
template <class Ready>
bool wait_until(const std::atomic<bool>& stop, Ready ready) {
  for (Backoff backoff; !ready(); backoff.pause()) {
    if (stop.load(std::memory_order_acquire)) return false;
  }
  return true;
}

}  // namespace onehop::standin
