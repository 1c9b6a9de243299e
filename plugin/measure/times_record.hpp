// The record in which the ranks exchange what they measured.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "plugin/measure/timings.hpp"

namespace onehop {

/// Times of one rank, in the order of its trials.
struct TimesRecord {
  static constexpr size_t kMost = 20;
  struct Entry {
    float us = 0, fast = 0, slow = 0;
  };
  std::array<Entry, kMost> times{};
  std::array<uint32_t, 4> reserved{};
};

/// Longer times, and what a peer sends that is no time, count as this.
inline constexpr double kLongestUs = 1e9;
constexpr double believed(double us) {
  return us > 0 && us < kLongestUs ? us : kLongestUs;
}

/// A time is what the slowest rank took.
inline Time slowest(std::span<const TimesRecord> table, size_t trial) {
  Time time(0);
  for (const TimesRecord& record : table) {
    const TimesRecord::Entry& of_rank = record.times[trial];
    time = slowest(time, {believed(of_rank.us), believed(of_rank.fast), believed(of_rank.slow)});
  }
  return time;
}

}  // namespace onehop
