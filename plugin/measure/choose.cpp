#include "plugin/measure/choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace onehop {
namespace {

/// What a row counts for at size i: NCCL's time less the margin.
double cost(const Timings::Row& row, size_t i) {
  return row.method ? row.us[i] : row.us[i] * kMargin;
}

const Timings::Row* best_at(const Timings& timings, size_t i, const Timings::Row* before) {
  const Timings::Row* best = &timings.rows.front();
  for (const Timings::Row& row : timings.rows)
    if (cost(row, i) < cost(*best, i)) best = &row;
  // Loyalty is for methods; NCCL has its margin already.
  if (before != nullptr && before->method && best->method && cost(*best, i) > kLoyalty * cost(*before, i))
    return before;
  return best;
}

/// The size between sizes[i - 1] and sizes[i] at which `after` becomes better than `before`.
uint64_t crossing(const Timings& timings, size_t i, const Timings::Row& before, const Timings::Row& after) {
  const auto low = static_cast<double>(timings.sizes[i - 1]), high = static_cast<double>(timings.sizes[i]);
  const double at_low = cost(after, i - 1) - cost(before, i - 1), at_high = cost(before, i) - cost(after, i);
  if (at_low <= 0) return timings.sizes[i - 1];
  if (at_high <= 0) return timings.sizes[i];
  return static_cast<uint64_t>(low + (high - low) * at_low / (at_low + at_high));
}

}  // namespace

std::vector<Method> leaders(const Timings& timings, size_t most) {
  // By the number of sizes at which a method is best, then by its loss against the best on the whole.
  struct Score {
    Method method;
    int wins = 0;
    double loss = 0;
  };
  std::vector<Score> scores;
  for (const Timings::Row& row : timings.rows)
    if (row.method) scores.push_back({*row.method});
  for (size_t i = 0; i < timings.sizes.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (const Score& s : scores) best = std::min(best, timings.of(s.method)->us[i]);
    for (Score& s : scores) {
      const double us = timings.of(s.method)->us[i];
      s.wins += us == best;
      s.loss += std::log(us / best);
    }
  }
  std::stable_sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    return (a.wins > 0) != (b.wins > 0) ? a.wins > 0 : a.loss < b.loss;
  });
  std::vector<Method> methods;
  for (const Score& s : scores)
    if (methods.size() < most) methods.push_back(s.method);
  return methods;
}

void choose(const Timings& timings, Plan& plan) {
  plan.count = 0;
  const Timings::Row* before = nullptr;
  for (size_t i = 0; i < timings.sizes.size(); ++i) {
    const Timings::Row* best = best_at(timings, i, before);
    if (before != nullptr && best != before) plan.add(crossing(timings, i, *before, *best), before->method);
    before = best;
    if (i + 1 == timings.sizes.size()) plan.add(timings.sizes[i], best->method);
  }
}

std::string describe(const Plan& plan, const Timings& timings) {
  std::string text;
  uint64_t above = 0;
  for (uint32_t r = 0; r < plan.count; ++r) {
    const auto& [max_bytes, method] = plan.ranges[r];
    if (r > 0) text += ", ";
    text += describe(plan.ranges[r]);
    const Timings::Row *row = timings.of(method), *nccl = timings.of(std::nullopt);
    for (size_t i = timings.sizes.size(); method && row != nullptr && nccl != nullptr && i-- > 0;) {
      if (timings.sizes[i] > max_bytes || timings.sizes[i] <= above) continue;
      char times[80];
      std::snprintf(times, sizeof(times), " (%.1f us at %llu, NCCL %.1f)", row->us[i],
                    static_cast<unsigned long long>(timings.sizes[i]), nccl->us[i]);
      text += times;
      break;
    }
    above = max_bytes;
  }
  return text;
}

}  // namespace onehop
