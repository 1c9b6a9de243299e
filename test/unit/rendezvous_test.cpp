// Threads of one process that meet on the host.
#include "plugin/setup/rendezvous.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace onehop::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kId = 7;

bool never() {
  return false;
}

/// Ends a wait that would not end, and says so.
class Limit {
 public:
  std::function<bool()> gives_up() {
    return [this] {
      if (Clock::now() < end_) return false;
      passed = true;
      return true;
    };
  }
  std::atomic<bool> passed = false;

 private:
  const Clock::time_point end_ = Clock::now() + std::chrono::seconds(10);
};

TEST(Rendezvous, NobodyGoesOnBeforeTheLastHasCome) {
  constexpr uint32_t kThreads = 4, kPhases = 20;
  Rendezvous rendezvous;
  Limit limit;
  std::atomic<uint32_t> come[kPhases] = {};
  std::atomic<bool> early = false;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t phase = 0; phase < kPhases; ++phase) {
        if (phase % kThreads == t) std::this_thread::sleep_for(milliseconds(2));
        ++come[phase];
        rendezvous.arrive(kId, 1);
        rendezvous.wait(kId, kThreads, phase, limit.gives_up());
        if (come[phase] != kThreads) early = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(early);
  EXPECT_FALSE(limit.passed);
}

TEST(Rendezvous, AThreadMayComeForSeveralRanks) {
  Rendezvous rendezvous;
  Limit limit;
  std::atomic<bool> through = false;
  std::thread waiter([&] {
    rendezvous.arrive(kId, 3);
    rendezvous.wait(kId, 5, 0, limit.gives_up());
    through = true;
  });
  rendezvous.arrive(kId, 1);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(through);
  rendezvous.arrive(kId, 1);
  waiter.join();
  EXPECT_FALSE(limit.passed);
  // One alone, for all of them: nothing to wait for.
  rendezvous.arrive(kId + 1, 2);
  rendezvous.wait(kId + 1, 2, 0, never);
}

/// As set-up of several communicators does: come to all of them, then wait for each, in whatever order.
TEST(Rendezvous, TheOrderOfCommunicatorsDoesNotMatter) {
  constexpr uint32_t kComms = 3, kPhases = 10;
  Rendezvous rendezvous;
  Limit limit;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kComms; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t phase = 0; phase < kPhases; ++phase) {
        for (uint32_t c = 0; c < kComms; ++c) rendezvous.arrive((t + c) % kComms, 1);
        for (uint32_t c = 0; c < kComms; ++c)
          rendezvous.wait((t + c) % kComms, kComms, phase, limit.gives_up());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(limit.passed);
}

TEST(Rendezvous, CommunicatorsDoNotCountForEachOther) {
  Rendezvous rendezvous;
  rendezvous.arrive(1, 1);
  rendezvous.arrive(2, 1);
  rendezvous.leave(3, 1, 2);
  int asked = 0;
  rendezvous.wait(1, 2, 0, [&] { return ++asked == 3; });
  EXPECT_EQ(asked, 3);
}

TEST(Rendezvous, WhoLeavesFreesThoseThatWait) {
  Rendezvous rendezvous;
  Limit limit;
  std::vector<std::thread> waiters;
  for (int t = 0; t < 2; ++t)
    waiters.emplace_back([&] {
      rendezvous.arrive(kId, 1);
      rendezvous.wait(kId, 3, 0, limit.gives_up());
      // Nor is there a later phase to wait for.
      rendezvous.wait(kId, 3, 1, limit.gives_up());
      rendezvous.leave(kId, 1, 3);
    });
  std::this_thread::sleep_for(milliseconds(20));
  rendezvous.leave(kId, 1, 3);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_FALSE(limit.passed);
}

TEST(Rendezvous, AWaitCanBeGivenUp) {
  Rendezvous rendezvous;
  std::atomic<bool> over = false;
  std::atomic<int> asked = 0;
  std::thread waiter([&] {
    rendezvous.arrive(kId, 1);
    rendezvous.wait(kId, 2, 0, [&] {
      ++asked;
      // Whoever asks may need the lock, and others come meanwhile.
      rendezvous.arrive(kId + 1, 1);
      return over.load();
    });
  });
  while (asked < 2) std::this_thread::sleep_for(milliseconds(1));
  over = true;
  waiter.join();
  EXPECT_GE(asked, 2);
}

/// After the last has left nothing of a communicator stays: the same id begins anew, with nobody come and
/// nobody gone.
TEST(Rendezvous, NothingStaysOfThoseThatAllLeft) {
  Rendezvous rendezvous;
  for (int use = 0; use < 3; ++use) {
    rendezvous.arrive(kId, 1);
    int asked = 0;
    rendezvous.wait(kId, 2, 0, [&] { return ++asked == 2; });
    EXPECT_EQ(asked, 2) << "something of an earlier use ended the wait";
    rendezvous.arrive(kId, 1);
    rendezvous.wait(kId, 2, 0, never);
    rendezvous.leave(kId, 1, 2);
    rendezvous.leave(kId, 1, 2);
  }
}

}  // namespace
}  // namespace onehop::test
