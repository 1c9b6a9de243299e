// Counters of one communicator, or of calls that belong to none. On the call path they cost one relaxed
// increment.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "plugin/pass.hpp"

namespace onehop {

class Statistics {
 public:
  static constexpr size_t kBuckets = 48;

  /// Calls of 2^b to 2^(b+1)-1 bytes share bucket b; empty calls are in bucket 0.
  static size_t bucket_of(uint64_t bytes) {
    const size_t bucket = bytes == 0 ? 0 : static_cast<size_t>(std::bit_width(bytes)) - 1;
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }

  void count_taken(uint64_t bytes) { add(taken_[bucket_of(bytes)]); }
  void count_passed(uint64_t bytes, Pass why) {
    add(passed_[bucket_of(bytes)]);
    add(reasons_[static_cast<size_t>(why)]);
  }

  void add(const Statistics& other) {
    for (size_t b = 0; b < kBuckets; ++b) {
      taken_[b].fetch_add(other.taken(b), std::memory_order_relaxed);
      passed_[b].fetch_add(other.passed(b), std::memory_order_relaxed);
    }
    for (size_t r = 0; r < kPassReasons; ++r)
      reasons_[r].fetch_add(get(other.reasons_[r]), std::memory_order_relaxed);
  }

  uint64_t taken(size_t bucket) const { return get(taken_[bucket]); }
  uint64_t passed(size_t bucket) const { return get(passed_[bucket]); }
  uint64_t passed_because(Pass why) const { return get(reasons_[static_cast<size_t>(why)]); }
  uint64_t taken() const { return sum(taken_); }
  uint64_t passed() const { return sum(passed_); }

 private:
  using Counter = std::atomic<uint64_t>;
  // Relaxed: the counters order nothing, and whoever reads them wants no exact moment.
  static void add(Counter& counter) { counter.fetch_add(1, std::memory_order_relaxed); }
  static uint64_t get(const Counter& counter) { return counter.load(std::memory_order_relaxed); }
  template <size_t N>
  static uint64_t sum(const std::array<Counter, N>& counters) {
    uint64_t total = 0;
    for (const Counter& counter : counters) total += get(counter);
    return total;
  }

  std::array<Counter, kBuckets> taken_{}, passed_{};
  std::array<Counter, kPassReasons> reasons_{};
};

}  // namespace onehop
