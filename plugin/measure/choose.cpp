#include "plugin/measure/choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace onehop {
namespace {

/// What is compared where one side is NCCL: slow samples of a method, and what NCCL is believed to reach.
double claim(const Timings::Row& row, size_t i) {
  const Time& time = row.times[i];
  return row.method ? time.slow : std::min(time.fast, kMargin * time.us);
}

/// The best method that is clearly faster than NCCL at size i, else NCCL.
const Timings::Row& best_at(const Timings& timings, size_t i, const Timings::Row* before) {
  const Timings::Row& nccl = *timings.of(std::nullopt);
  const auto serves = [&](const Timings::Row& row) { return row.method && claim(row, i) < claim(nccl, i); };
  const Timings::Row* best = nullptr;
  for (const Timings::Row& row : timings.rows)
    if (serves(row) && (best == nullptr || row.times[i].us < best->times[i].us)) best = &row;
  if (best == nullptr) return nccl;
  if (before != nullptr && serves(*before) && best->times[i].us > kLoyalty * before->times[i].us)
    return *before;
  return *best;
}

/// The size between sizes[i - 1] and sizes[i] at which `after` becomes better than `before`.
uint64_t crossing(const Timings& timings, size_t i, const Timings::Row& before, const Timings::Row& after) {
  const bool methods = before.method && after.method;
  const auto lead = [&](const Timings::Row& of, const Timings::Row& over, size_t at) {
    return methods ? over.times[at].us - of.times[at].us : claim(over, at) - claim(of, at);
  };
  const auto low = static_cast<double>(timings.sizes[i - 1]), high = static_cast<double>(timings.sizes[i]);
  const double at_low = lead(before, after, i - 1), at_high = lead(after, before, i);
  if (at_low <= 0) return timings.sizes[i - 1];
  if (at_high <= 0) return timings.sizes[i];
  // The larger size was measured and is `after`'s, however little it is ahead there.
  const auto at = static_cast<uint64_t>(low + (high - low) * at_low / (at_low + at_high));
  return std::min(at, timings.sizes[i] - 1);
}

/// `before` serves up to sizes[i - 1] at least, `after` from sizes[i] on.
void change(const Timings& timings, size_t i, const Timings::Row& before, const Timings::Row& after,
            Plan& plan) {
  const uint64_t at = crossing(timings, i, before, after);
  if (!before.method || !after.method) return plan.add(at, before.method);
  // Where they cross, one of them or both may be slower than NCCL.
  const Timings::Row& nccl = *timings.of(std::nullopt);
  const uint64_t leaves = crossing(timings, i, before, nccl), enters = crossing(timings, i, nccl, after);
  if (enters <= leaves) return plan.add(std::clamp(at, enters, leaves), before.method);
  plan.add(leaves, before.method);
  plan.add(enters, std::nullopt);
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
    for (const Score& s : scores) best = std::min(best, timings.of(s.method)->times[i].us);
    for (Score& s : scores) {
      const double us = timings.of(s.method)->times[i].us;
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
    const Timings::Row& best = best_at(timings, i, before);
    if (before != nullptr && &best != before) change(timings, i, *before, best, plan);
    before = &best;
    if (i + 1 == timings.sizes.size()) plan.add(timings.sizes[i], best.method);
  }
}

std::string describe(const Plan& plan, const Timings& timings) {
  std::string text;
  uint64_t above = 0;
  for (uint32_t r = 0; r < plan.count; ++r) {
    const uint64_t max_bytes = plan.ranges[r].max_bytes;
    const std::optional<Method> method = plan.ranges[r].method;
    if (r > 0) text += ", ";
    text += describe(plan.ranges[r]);
    if (method == Method::kIslands)
      text += " (" + show_islands({plan.islands.island, plan.layout.ranks}) + ")";
    const Timings::Row *row = timings.of(method), *nccl = timings.of(std::nullopt);
    for (size_t i = timings.sizes.size(); method && row != nullptr && nccl != nullptr && i-- > 0;) {
      if (timings.sizes[i] > max_bytes || timings.sizes[i] <= above) continue;
      char times[80];
      std::snprintf(times, sizeof(times), " (%.1f us at %llu, NCCL %.1f)", row->times[i].us,
                    static_cast<unsigned long long>(timings.sizes[i]), nccl->times[i].us);
      text += times;
      break;
    }
    above = max_bytes;
  }
  return text;
}

}  // namespace onehop
