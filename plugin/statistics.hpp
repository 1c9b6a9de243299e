// Counters of one communicator, or of calls that belong to none. On the call path a call costs two relaxed
// additions: one in the table of calls, one to the bytes.
//
// Plain numbers, changed through atomic_ref: the counters lie in memory that other processes read
// (statistics_page.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "kernels/method.hpp"
#include "plugin/pass.hpp"

namespace onehop {

class Statistics {
 public:
  static constexpr size_t kBuckets = 48;

  /// Calls of 2^b to 2^(b+1)-1 bytes share bucket b; empty calls are in bucket 0.
  static size_t bucket_of(uint64_t bytes) {
    const size_t bucket = bytes == 0 ? 0 : static_cast<size_t>(std::bit_width(bytes)) - 1;
    return std::min(bucket, kBuckets - 1);
  }

  void count_taken(uint64_t bytes, Method how) { taken_[static_cast<size_t>(how)].count(bytes); }
  void count_passed(uint64_t bytes, Pass why) { passed_[static_cast<size_t>(why)].count(bytes); }

  void add(const Statistics& other) {
    for (size_t m = 0; m < kMethods; ++m) taken_[m].add(other.taken_[m]);
    for (size_t r = 0; r < kPassReasons; ++r) passed_[r].add(other.passed_[r]);
  }

  uint64_t taken(size_t bucket) const {
    return sum(taken_, [bucket](const Row& row) { return get(row.calls[bucket]); });
  }
  uint64_t passed(size_t bucket) const {
    return sum(passed_, [bucket](const Row& row) { return get(row.calls[bucket]); });
  }
  uint64_t taken_by(Method how) const { return taken_[static_cast<size_t>(how)].all(); }
  uint64_t bytes_by(Method how) const { return get(taken_[static_cast<size_t>(how)].bytes); }
  uint64_t passed_because(Pass why) const { return passed_[static_cast<size_t>(why)].all(); }
  uint64_t taken() const {
    return sum(taken_, [](const Row& row) { return row.all(); });
  }
  uint64_t passed() const {
    return sum(passed_, [](const Row& row) { return row.all(); });
  }
  uint64_t taken_bytes() const {
    return sum(taken_, [](const Row& row) { return get(row.bytes); });
  }
  uint64_t passed_bytes() const {
    return sum(passed_, [](const Row& row) { return get(row.bytes); });
  }

 private:
  // Relaxed: the counters order nothing, and whoever reads them wants no exact moment.
  static void add_to(uint64_t& counter, uint64_t value) {
    std::atomic_ref(counter).fetch_add(value, std::memory_order_relaxed);
  }
  /// Most counters are zero: a page of memory that nothing was counted in stays untouched.
  static void add_some(uint64_t& counter, uint64_t value) {
    if (value != 0) add_to(counter, value);
  }
  static uint64_t get(const uint64_t& counter) {
    // C++20 has no atomic_ref of const.
    return std::atomic_ref(const_cast<uint64_t&>(counter)).load(std::memory_order_relaxed);
  }

  /// Calls of one method, or that were passed for one reason.
  struct Row {
    std::array<uint64_t, kBuckets> calls;
    uint64_t bytes;

    void count(uint64_t size) {
      add_to(calls[bucket_of(size)], 1);
      add_to(bytes, size);
    }
    void add(const Row& other) {
      for (size_t b = 0; b < kBuckets; ++b) add_some(calls[b], get(other.calls[b]));
      add_some(bytes, get(other.bytes));
    }
    uint64_t all() const {
      uint64_t total = 0;
      for (const uint64_t& counter : calls) total += get(counter);
      return total;
    }
  };

  template <size_t N, class Value>
  static uint64_t sum(const std::array<Row, N>& rows, Value&& value) {
    uint64_t total = 0;
    for (const Row& row : rows) total += value(row);
    return total;
  }

  std::array<Row, kMethods> taken_{};
  std::array<Row, kPassReasons> passed_{};
};

}  // namespace onehop
