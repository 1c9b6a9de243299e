// Plan files: what was measured earlier, on the same machine. The form is in docs/plans.md.
//
// A file is only data from outside: whatever is in it, a communicator gets a plan that it could also have
// measured, or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/measure/timings.hpp"
#include "plugin/plan.hpp"
#include "plugin/plan_file/machine.hpp"
#include "plugin/result.hpp"

namespace onehop {

/// The largest file that is read, and what it may hold at most.
inline constexpr size_t kLargestPlanFile = 1 << 20, kMostPlans = 256, kLongestFact = 1000;
inline constexpr uint64_t kLargestPlannedCall = 8 << 20;

/// What one machine's communicators of one kind do.
struct FilePlan {
  struct Range {
    uint64_t up_to = 0;            ///< bytes of the largest call
    std::optional<Method> method;  ///< nothing: NCCL
    Geometry most{0, 0};           ///< no blocks: as geometry_for() has it
    uint64_t measured_at = 0;      ///< bytes of a call of this range
    double us = 0, nccl_us = 0;    ///< that it took; `us` only with a method
  };
  Machine machine;
  std::string measured;          ///< when and how, for people
  std::vector<uint8_t> islands;  ///< of each rank, where a range has the method islands
  std::vector<Range> ranges;

  bool has_islands() const;  ///< a range has that method
};

struct PlanFile {
  uint64_t hash = 0;  ///< of its bytes; never 0
  std::vector<FilePlan> plans;
};

/// An Error says what is wrong with it. Throws nothing but std::bad_alloc.
Result<PlanFile> parse_plan_file(std::string_view bytes);

/// Opens a regular file for reading, and never waits for one.
Result<PlanFile> read_plan_file(const std::string& path);

/// The plan for `machine`; an Error says in what the nearest differs.
Result<const FilePlan*> find_plan(const PlanFile&, const Machine&);

/// Sets the ranges of `plan`, up to ONEHOP_MAX_BYTES, its islands and the times that led to them. An Error,
/// with nothing changed, if this communicator cannot run it: a method that no memory was laid out for, or
/// that was not probed, a launch of more than `most_blocks` blocks, or islands that are not those of
/// ONEHOP_ISLANDS.
Status use_plan(const FilePlan&, uint32_t most_blocks, const Settings&, Plan& plan, Timings&);

}  // namespace onehop
