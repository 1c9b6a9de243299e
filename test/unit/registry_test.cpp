// Which communicators are known, by handle: every call of the job looks here.
#include "plugin/registry.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>

#include "plugin/communicator.hpp"
#include "test/protocol/random.hpp"

namespace {

/// The largest piece of memory that was asked for: the registry's table, if it grows.
std::atomic<size_t> largest_allocation{0};

void* allocate(size_t bytes) {
  size_t largest = largest_allocation.load(std::memory_order_relaxed);
  while (bytes > largest && !largest_allocation.compare_exchange_weak(largest, bytes)) {
  }
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace onehop::test {
namespace {

/// The n-th of some handles; as malloc would place them.
nccl::Comm handle(uint64_t n) {
  return reinterpret_cast<nccl::Comm>(0x7f0000000010 + n * 0x2a40);
}

std::unique_ptr<Communicator> communicator(uint64_t n) {
  return std::make_unique<Communicator>(std::to_string(n));
}

bool holds(const Registry& registry, uint64_t n) {
  const Communicator* found = registry.find(handle(n));
  return found != nullptr && found->reason() == std::to_string(n);
}

TEST(Registry, FindsWhatIsInItAndNothingElse) {
  Registry registry;
  EXPECT_EQ(registry.find(handle(1)), nullptr);
  EXPECT_EQ(registry.remove(handle(1)), nullptr);
  auto one = communicator(1);
  Communicator* const address = one.get();
  registry.insert(handle(1), std::move(one));
  EXPECT_EQ(registry.find(handle(1)), address);
  EXPECT_EQ(registry.find(handle(2)), nullptr);
  EXPECT_EQ(registry.remove(handle(2)), nullptr);
  EXPECT_EQ(registry.remove(handle(1)).get(), address);
  EXPECT_EQ(registry.find(handle(1)), nullptr);
  EXPECT_EQ(registry.remove(handle(1)), nullptr) << "given away once";
}

/// What a job may pass by mistake: also the mark that the registry itself puts in its slots.
TEST(Registry, NoHandleIsNeverFound) {
  Registry registry;
  registry.insert(handle(1), communicator(1));
  (void)registry.remove(handle(1));
  for (const uintptr_t value : {uintptr_t{0}, uintptr_t{1}}) {
    EXPECT_EQ(registry.find(reinterpret_cast<nccl::Comm>(value)), nullptr);
    EXPECT_EQ(registry.remove(reinterpret_cast<nccl::Comm>(value)), nullptr);
  }
}

TEST(Registry, GrowsWithWhatIsInIt) {
  Registry registry;
  constexpr uint64_t kMany = 5000;
  for (uint64_t n = 0; n < kMany; ++n) {
    registry.insert(handle(n), communicator(n));
    ASSERT_TRUE(holds(registry, n));
    ASSERT_TRUE(holds(registry, n / 2)) << "lost when it grew";
    ASSERT_EQ(registry.find(handle(n + 1)), nullptr);
  }
  std::map<nccl::Comm, int> visits;
  registry.for_each([&](nccl::Comm of, Communicator&) { ++visits[of]; });
  EXPECT_EQ(visits.size(), kMany);
  for (uint64_t n = 0; n < kMany; ++n) ASSERT_EQ(visits[handle(n)], 1);
  for (uint64_t n = 0; n < kMany; n += 2) ASSERT_NE(registry.remove(handle(n)), nullptr);
  for (uint64_t n = 0; n < kMany; ++n) ASSERT_EQ(holds(registry, n), n % 2 == 1) << n;
}

/// NCCL gives a new communicator the address of an old one: it must not meet the old one's state.
TEST(Registry, AReusedHandleIsANewCommunicator) {
  Registry registry;
  registry.insert(handle(0), communicator(0));
  for (uint64_t n = 1; n < 3000; ++n) {
    (void)registry.remove(handle(0));
    EXPECT_EQ(registry.find(handle(0)), nullptr);
    registry.insert(handle(0), communicator(n));
    ASSERT_EQ(registry.find(handle(0))->reason(), std::to_string(n));
  }
  int visits = 0;
  registry.for_each([&](nccl::Comm, Communicator&) { ++visits; });
  EXPECT_EQ(visits, 1);
}

/// Against a simple map, with few handles, so that removed slots lie on every way.
TEST(Registry, DoesWhatAMapDoes) {
  Random random(3);
  Registry registry;
  std::map<uint64_t, bool> model;
  for (int step = 0; step < 60000; ++step) {
    const uint64_t n = random.next() % 90;
    if (model[n]) {
      ASSERT_NE(registry.remove(handle(n)), nullptr);
    } else {
      registry.insert(handle(n), communicator(n));
    }
    model[n] = !model[n];
    const uint64_t other = random.next() % 90;
    ASSERT_EQ(holds(registry, other), model[other]) << other;
  }
}

/// A service that makes and destroys communicators for weeks, some always alive.
TEST(Registry, TakesNoMoreMemoryForCommunicatorsThatAreGone) {
  constexpr uint64_t kLiving = 20, kAll = 100000;
  for (const bool reused : {true, false}) {
    Registry registry;
    largest_allocation = 0;
    for (uint64_t n = 0; n < kAll; ++n) {
      const auto name = [&](uint64_t i) { return reused ? i % (2 * kLiving) : i; };
      registry.insert(handle(name(n)), communicator(n));
      if (n >= kLiving) {
        ASSERT_NE(registry.remove(handle(name(n - kLiving))), nullptr);
      }
    }
    EXPECT_LT(largest_allocation, 16384u) << (reused ? "handles come again" : "every handle is new");
  }
}

/// Calls on some communicators while others come and go. Run with ThreadSanitizer too.
TEST(Registry, FindersNeedNoLock) {
  constexpr uint64_t kStable = 40, kRounds = 4000;
  Registry registry;
  for (uint64_t n = 0; n < kStable; ++n) registry.insert(handle(n), communicator(n));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> lost{0}, found{0};
  std::vector<std::thread> finders;
  for (uint64_t t = 0; t < 3; ++t)
    finders.emplace_back([&, t] {
      Random random(t);
      do {
        if (!holds(registry, random.next() % kStable)) ++lost;
        if (registry.find(handle(1'000'000 + random.next() % 100)) != nullptr) ++lost;
        ++found;
      } while (!done);
    });
  std::vector<std::thread> changers;
  for (uint64_t t = 0; t < 2; ++t)
    changers.emplace_back([&, t] {
      // Grows to hundreds, shrinks, and grows again.
      for (uint64_t round = 0; round < kRounds; ++round) {
        const uint64_t n = 1000 * (t + 1) + round % 400;
        if (round / 400 % 2 == 0) {
          registry.insert(handle(n), communicator(n));
        } else if (registry.remove(handle(n)) == nullptr) {
          ++lost;
        }
      }
    });
  for (std::thread& thread : changers) thread.join();
  done = true;
  for (std::thread& thread : finders) thread.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_GT(found, 0u);
}

/// A communicator that one thread makes and hands to another, which calls on it at once.
TEST(Registry, AHandedOverHandleIsFoundAtOnce) {
  Registry registry;
  std::atomic<uint64_t> made{0}, used{0};
  constexpr uint64_t kRounds = 3000;
  uint64_t lost = 0;
  std::thread user([&] {
    for (uint64_t n = 1; n <= kRounds; ++n) {
      while (made.load(std::memory_order_acquire) < n) std::this_thread::yield();
      if (registry.find(handle(n % 3))->reason() != std::to_string(n)) ++lost;
      used.store(n, std::memory_order_release);
    }
  });
  for (uint64_t n = 1; n <= kRounds; ++n) {
    registry.insert(handle(n % 3), communicator(n));
    made.store(n, std::memory_order_release);
    while (used.load(std::memory_order_acquire) < n) std::this_thread::yield();
    (void)registry.remove(handle(n % 3));
  }
  user.join();
  EXPECT_EQ(lost, 0u);
}

}  // namespace
}  // namespace onehop::test
