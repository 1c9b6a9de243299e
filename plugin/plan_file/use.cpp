#include <algorithm>
#include <limits>

#include "plugin/plan_file/plan_file.hpp"

namespace onehop {

bool FilePlan::has_islands() const {
  return std::any_of(ranges.begin(), ranges.end(),
                     [](const Range& range) { return range.method == Method::kIslands; });
}

Result<const FilePlan*> find_plan(const PlanFile& file, const Machine& machine) {
  const FilePlan* nearest = nullptr;
  size_t fewest = kFacts + 1;
  for (const FilePlan& plan : file.plans) {
    size_t different = 0;
    for (size_t f = 0; f < kFacts; ++f) different += plan.machine.facts[f] != machine.facts[f];
    if (different == 0) return &plan;
    if (different < fewest) nearest = &plan, fewest = different;
  }
  if (nearest == nullptr) return Error{"it has no plans"};
  std::string why = "no plan in it is for this machine; the nearest has";
  bool first = true;
  for (size_t f = 0; f < kFacts; ++f) {
    if (nearest->machine.facts[f] == machine.facts[f]) continue;
    why += std::string(first ? " " : ", ") + kFactNames[f] + " '" + nearest->machine.facts[f] + "' for '" +
           machine.facts[f] + "'";
    first = false;
  }
  return Error{why};
}

namespace {

/// Those of the file, where it needs some; else those that the communicator has.
Result<Islands> islands_for(const FilePlan& from, const Settings& settings, const Plan& plan) {
  const uint32_t ranks = plan.layout.ranks;
  if (!from.has_islands()) return plan.islands;
  const std::string which = "its islands " + show_islands(from.islands);
  if (from.islands.size() != ranks) return Error{which + " are not of " + std::to_string(ranks) + " ranks"};
  if (std::equal(from.islands.begin(), from.islands.end(), plan.islands.island)) return plan.islands;
  if (settings.islands.size() == ranks) return Error{which + " are not those of ONEHOP_ISLANDS"};
  // The memory of those that are no partners was not mapped.
  if (ranks > kMaxHopRanks) return Error{which + " are not those of this communicator"};
  return make_islands(from.islands.data(), ranks);
}

}  // namespace

Status use_plan(const FilePlan& from, uint32_t most_blocks, const Settings& settings, Plan& plan,
                Timings& timings) {
  const auto begin = plan.candidates.begin(), end = begin + plan.candidate_count;
  for (const FilePlan::Range& range : from.ranges) {
    if (!range.method) continue;
    if (std::find(begin, end, *range.method) == end)
      return Error{std::string(name_of(*range.method)) + " cannot serve this communicator"};
    if (range.most.blocks > most_blocks)
      return Error{std::string(name_of(*range.method)) + " with " + std::to_string(range.most.blocks) +
                   " blocks has more than the " + std::to_string(most_blocks) + " that run at once here"};
  }
  const Result<Islands> islands = islands_for(from, settings, plan);
  if (!islands) return islands.error();
  plan.islands = *islands;
  plan.count = 0;
  timings = {};
  timings.rows.push_back({std::nullopt, {}});
  for (const FilePlan::Range& range : from.ranges) {
    if (range.method && timings.of(range.method) == nullptr) timings.rows.push_back({range.method, {}});
    plan.add(std::min(range.up_to, settings.max_bytes), range.method, range.most);
  }
  for (const FilePlan::Range& range : from.ranges) {
    timings.sizes.push_back(range.measured_at);
    for (Timings::Row& row : timings.rows)
      row.times.emplace_back(!row.method                  ? range.nccl_us
                             : row.method == range.method ? range.us
                                                          : std::numeric_limits<double>::quiet_NaN());
  }
  return {};
}

}  // namespace onehop
