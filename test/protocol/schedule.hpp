// Forcing one schedule: how far each rank has come, and waiting for it.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "kernels/protocol/layout.hpp"

namespace onehop::test {

/// Waits for `reached`, but not for ever: the schedule that a test asks for may be impossible, which is then
/// the point of the test.
template <class Condition>
void wait_for(const Condition& reached, std::chrono::milliseconds most = std::chrono::milliseconds(200)) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!reached() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

/// How far each rank has come.
struct Progress {
  std::atomic<uint32_t> sent[kMaxRanks] = {};    ///< operations whose words it has begun to send
  std::atomic<uint32_t> paused[kMaxRanks] = {};  ///< operations in which it has waited for others

  void note_sent(uint32_t rank, uint32_t operation) { sent[rank] = operation + 1; }
  /// True once per operation: a hook that waited at every look would make a hang last for hours.
  bool may_pause(uint32_t rank, uint32_t operation) {
    return paused[rank].exchange(operation + 1) <= operation;
  }
  bool has_sent(uint32_t rank, uint32_t operation) const { return sent[rank] > operation; }
};

}  // namespace onehop::test
