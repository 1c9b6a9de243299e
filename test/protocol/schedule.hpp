// Forcing one schedule: how far each rank has come, and waiting for it.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "kernels/protocol/inbox.hpp"

namespace onehop::test {

/// Waits for `reached`, but not for ever: the schedule that a test asks for may be impossible, which is then
/// the point of the test.
template <class Condition>
void wait_for(const Condition& reached, std::chrono::milliseconds most = std::chrono::milliseconds(200)) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!reached() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

/// Operations whose words each rank has begun to send.
struct Progress {
  std::atomic<uint32_t> sent[kMaxRanks] = {};

  void note_sent(uint32_t rank, uint32_t operation) { sent[rank] = operation + 1; }
  bool has_sent(uint32_t rank, uint32_t operation) const { return sent[rank] > operation; }
};

}  // namespace onehop::test
