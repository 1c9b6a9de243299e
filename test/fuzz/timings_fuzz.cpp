// The times of all ranks, as they come from the peers: any floats. What is chosen from them is a plan, and
// NCCL keeps each size at which no method is faster.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugin/measure/choose.hpp"
#include "plugin/measure/times_record.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

constexpr Method kTimed[] = {Method::kOneShot, Method::kTwoShot, Method::kIslands};

/// NCCL's row first, then those of some methods, one time after another.
Timings timings_of(std::span<const TimesRecord> table, size_t sizes) {
  Timings timings;
  for (size_t i = 0; i < sizes; ++i) timings.sizes.push_back(uint64_t{1024} << (2 * i));
  timings.rows.push_back({std::nullopt, {}});
  for (const Method method : kTimed) timings.rows.push_back({method, {}});
  size_t trial = 0;
  for (Timings::Row& row : timings.rows)
    for (size_t i = 0; i < sizes; ++i) row.times.push_back(slowest(table, trial++));
  return timings;
}

std::optional<Method> method_at(const Plan& plan, uint64_t bytes) {
  for (uint32_t r = 0; r < plan.count; ++r)
    if (bytes <= plan.ranges[r].max_bytes) return plan.ranges[r].method;
  return std::nullopt;
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  if (size < 2) return 0;
  std::vector<TimesRecord> table(2 + data[0] % 2);
  const size_t sizes = 1 + data[1] % (TimesRecord::kMost / (1 + std::size(kTimed))),
               trials = sizes * (1 + std::size(kTimed));
  data += 2, size -= 2;
  for (TimesRecord& record : table) {
    for (size_t t = 0; t < trials; ++t) disturb(record.times[t], data, size);
  }
  const Timings timings = timings_of(table, sizes);
  const std::vector<Method> best = leaders(timings, 2);
  require(best.size() == 2 && best[0] != best[1], "there are leaders");
  Plan plan;
  choose(timings, plan);
  require(plan.count >= 1 && plan.max_bytes() == timings.sizes.back(), "every measured size is decided");
  for (uint32_t r = 1; r < plan.count; ++r)
    require(plan.ranges[r - 1].max_bytes < plan.ranges[r].max_bytes, "ranges ascend");
  for (size_t i = 0; i < sizes; ++i)
    if (const auto method = method_at(plan, timings.sizes[i]))
      require(timings.of(*method)->times[i].slow <= kMargin * timings.of(std::nullopt)->times[i].us &&
                  timings.of(*method)->times[i].slow <= timings.of(std::nullopt)->times[i].fast,
              "a method is clearly faster than NCCL where it serves");
  require_line(describe(plan, timings));
  return 0;
}
