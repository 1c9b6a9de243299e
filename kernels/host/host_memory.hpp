// The protocol's memory on a CPU: ordinary memory shared by threads or processes. ThreadSanitizer understands
// all of it.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/protocol/memory.hpp"

namespace onehop {

class HostMemory {
 public:
  // Relaxed, as on the GPU: the protocol relies on nothing but the wholeness of 8 bytes.
  void send(Pack* to, const Pack& pack) const { store(to, pack); }
  void clear(Pack* to, const Pack& pack) const { store(to, pack); }
  Pack receive(const Pack* from) const {
    uint64_t half[2];
    auto* halves = reinterpret_cast<uint64_t*>(const_cast<Pack*>(from));
    for (int i = 0; i < 2; ++i)
      half[i] = std::atomic_ref<uint64_t>(halves[i]).load(std::memory_order_relaxed);
    Pack pack;
    std::memcpy(&pack, half, sizeof(pack));
    return pack;
  }

  Pack peek(const Pack* from) const { return receive(from); }

  Pack recall(const Pack* shadow) const { return *shadow; }
  void keep(Pack* shadow, const Pack& pack) const { *shadow = pack; }

  Turn load_turn(const Turn* turn) const { return *turn; }
  void store_turn(Turn* turn, const Turn& next) const { *turn = next; }
  uint32_t arrive(uint32_t* counter) const {
    return std::atomic_ref<uint32_t>(*counter).fetch_add(1, std::memory_order_acq_rel);
  }
  void reset(uint32_t* counter) const {
    std::atomic_ref<uint32_t>(*counter).store(0, std::memory_order_relaxed);
  }

  Stop stop(Control* control) const {
    return static_cast<Stop>(std::atomic_ref<uint32_t>(control->stop).load(std::memory_order_relaxed));
  }
  void report(Control* control, Stop why, uint32_t rank) const {
    std::atomic_ref<uint32_t>(control->missing_rank).store(rank, std::memory_order_relaxed);
    std::atomic_ref<uint32_t>(control->stop).store(static_cast<uint32_t>(why), std::memory_order_release);
  }

  void pause() const { sched_yield(); }
  uint64_t now_ns() const {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                 std::chrono::nanoseconds(1));
  }

 private:
  static void store(Pack* to, const Pack& pack) {
    uint64_t half[2];
    std::memcpy(half, &pack, sizeof(pack));
    auto* halves = reinterpret_cast<uint64_t*>(to);
    for (int i = 0; i < 2; ++i)
      std::atomic_ref<uint64_t>(halves[i]).store(half[i], std::memory_order_relaxed);
  }
};

/// One thread that is all of a rank.
struct SingleThread {
  uint32_t block() const { return 0; }
  uint32_t blocks() const { return 1; }
  bool is_keeper() const { return true; }
  bool is_worker() const { return true; }
  uint32_t worker() const { return 0; }
  uint32_t workers() const { return 1; }
  void sync() const {}
};

}  // namespace onehop
