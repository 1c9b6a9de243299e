// What was measured of a communicator: the same on all its ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/method.hpp"

namespace onehop {

/// The time of one call, in us, from several samples.
struct Time {
  double us = std::numeric_limits<double>::quiet_NaN();  ///< mean of the middle half; NaN: not measured
  double fast = us, slow = us;  ///< the second fastest and the second slowest sample, so that one stray
                                ///< sample on either side decides nothing

  Time() = default;
  Time(double exact) : us(exact) {}  // NOLINT(google-explicit-constructor): a time without a spread
  Time(double middle, double second_fastest, double second_slowest)
      : us(middle), fast(second_fastest), slow(second_slowest) {}

  bool known() const { return !std::isnan(us); }
};

/// `samples` is not empty. The mean of the middle half is as deaf to strays as the median, and steadier.
inline Time time_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size(), stray = n > 2 ? 1 : 0, quarter = std::max(stray, n / 4);
  const double sum = std::accumulate(samples.begin() + static_cast<ptrdiff_t>(quarter),
                                     samples.end() - static_cast<ptrdiff_t>(quarter), 0.0);
  return {sum / static_cast<double>(n - 2 * quarter), samples[stray], samples[n - 1 - stray]};
}

/// A call is over when it is over on every rank.
inline Time slowest(const Time& a, const Time& b) {
  return {std::max(a.us, b.us), std::max(a.fast, b.fast), std::max(a.slow, b.slow)};
}

struct Timings {
  struct Row {
    std::optional<Method> method;  ///< nothing: stock NCCL
    std::vector<Time> times;       ///< for each of `sizes`
  };
  std::vector<uint64_t> sizes;  ///< bytes of a call, ascending
  std::vector<Row> rows;

  const Row* of(std::optional<Method> method) const {
    for (const Row& row : rows)
      if (row.method == method) return &row;
    return nullptr;
  }
};

}  // namespace onehop
