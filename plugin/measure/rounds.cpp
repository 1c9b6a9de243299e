#include "plugin/measure/rounds.hpp"

#include <algorithm>

#include "plugin/measure/choose.hpp"

namespace onehop {

Effort effort_for(MeasureChoice choice, uint64_t max_bytes) {
  Effort effort;
  uint64_t factor = 4;
  if (choice == MeasureChoice::kFull) {
    effort.first_samples = 7;
    effort.samples = 15;
    effort.calls = 10;
    factor = 2;
  }
  for (uint64_t bytes = 1 << 10; bytes < max_bytes; bytes *= factor) effort.sizes.push_back(bytes);
  effort.sizes.push_back((max_bytes + sizeof(Pack) - 1) / sizeof(Pack) * sizeof(Pack));
  return effort;
}

uint32_t Effort::calls_of(uint64_t bytes) const {
  constexpr uint64_t kSmall = 64 << 10;
  return bytes <= kSmall ? calls : static_cast<uint32_t>(std::max<uint64_t>(calls * kSmall / bytes, 1));
}

std::vector<Trial> first_trials(const Plan& plan, const Effort& effort) {
  const size_t last = effort.sizes.size() - 1;
  std::vector<size_t> few = {0, last / 2, last};
  few.erase(std::unique(few.begin(), few.end()), few.end());
  std::vector<Trial> trials;
  for (uint32_t c = 0; c < plan.candidate_count; ++c)
    for (const size_t i : few) trials.push_back({plan.candidates[c], effort.sizes[i]});
  return trials;
}

std::vector<Trial> second_trials(const Timings& timings, const Effort& effort) {
  // The first trials were at the same sizes for all.
  Timings few;
  for (const Timings::Row& row : timings.rows) {
    if (!row.method) continue;
    Timings::Row known{row.method, {}};
    for (const Time& time : row.times)
      if (time.known()) known.times.push_back(time);
    few.sizes.resize(known.times.size());
    few.rows.push_back(known);
  }
  std::vector<Trial> trials;
  // By size, so that what drifts while this is measured drifts for both sides of each comparison.
  const std::vector<Method> methods = leaders(few, effort.leaders);
  for (const uint64_t bytes : effort.sizes) {
    trials.push_back({std::nullopt, bytes});
    for (const Method method : methods) trials.push_back({method, bytes});
  }
  return trials;
}

void note(Timings& timings, const Trial& trial, const Time& time) {
  auto row = std::find_if(timings.rows.begin(), timings.rows.end(),
                          [&](const Timings::Row& r) { return r.method == trial.method; });
  if (row == timings.rows.end())
    row = timings.rows.insert(row, {trial.method, std::vector<Time>(timings.sizes.size())});
  const auto at = std::find(timings.sizes.begin(), timings.sizes.end(), trial.bytes);
  row->times[static_cast<size_t>(at - timings.sizes.begin())] = time;
}

void keep_complete_rows(Timings& timings) {
  std::erase_if(timings.rows, [](const Timings::Row& row) {
    return !std::all_of(row.times.begin(), row.times.end(), [](const Time& time) { return time.known(); });
  });
}

}  // namespace onehop
