// The plan of a communicator and the decision about a call. Everything here is a pure function of facts that
// are equal on all ranks: a decision that differed between ranks would hang the job.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/geometry.hpp"
#include "plugin/nccl_abi.hpp"
#include "plugin/pass.hpp"
#include "plugin/result.hpp"
#include "plugin/settings.hpp"
#include "plugin/staging/memory.hpp"

namespace onehop {

/// The part of a call that NCCL's contract makes equal on all ranks. Buffers, alignment, streams and whether
/// the call stands in a group are not here, so that no decision can look at them.
struct SharedFacts {
  size_t count;
  nccl::DataType type;
  nccl::RedOp op;
};

/// Bytes of one element; 0 for a value that is no NCCL type.
size_t bytes_of(nccl::DataType type);

/// The kernels' element for an NCCL type; nothing for a value that is none.
std::optional<Element> element_of(nccl::DataType type);

/// The kernels' operator for an NCCL operator; nothing for operators that the user made.
std::optional<Reduction> reduction_of(nccl::RedOp op);

/// What a communicator takes, with which method, and the memory that this needs.
struct Plan {
  struct Range {
    uint64_t max_bytes = 0;        ///< largest call of this range
    std::optional<Method> method;  ///< nothing: NCCL
    Geometry most{0, 0};           ///< of a launch; no blocks: as geometry_for() has it
  };
  std::array<Range, 16> ranges{};             ///< by size, ascending
  uint32_t count = 0;                         ///< ranges in use; calls beyond the last go to NCCL
  std::array<Method, kMethods> candidates{};  ///< the methods that the memory is laid out for
  uint32_t candidate_count = 0;
  Layout layout;
  Islands islands;
  bool takes_fp8 = false;  ///< NCCL reduces fp8 on every rank; elsewhere it returns an error, which it must
                           ///< see the call for

  uint64_t max_bytes() const { return count == 0 ? 0 : ranges[count - 1].max_bytes; }
  /// A range above those there are; one that continues the last range extends it.
  void add(uint64_t up_to, std::optional<Method>, Geometry most = {0, 0});
  /// Elements that one operation can carry.
  size_t piece(Method, Element) const;
  /// Whether NCCL serves every call.
  bool is_empty() const;
  /// Whether `rank` must reach the memory of `peer`.
  bool needs(uint32_t rank, uint32_t peer) const;
};

/// The plan of a communicator of `ranks` ranks, with this kind of staging, under settings that all of them
/// share; an Error says why there is none. Its ranges are guesses, for as long as nothing is measured.
Result<Plan> make_plan(const Settings&, StagingKind, uint32_t ranks);

/// The settings that a plan is made from: one that a plan file may replace needs memory for every candidate,
/// though nothing may be measured.
inline Settings settings_with(Settings settings, bool plan_file) {
  if (plan_file && settings.measure == MeasureChoice::kOff) settings.measure = MeasureChoice::kQuick;
  return settings;
}

/// "one-shot push up to 65536 bytes"
std::string describe(const Plan::Range&);
/// The ranges one after another.
std::string describe(const Plan&);

/// Staging memory of one rank, for one communicator. The largest that a plan may need.
inline constexpr uint64_t kStagingBudget = (16 << 20) - (1 << 20);  // and 1 MiB for the probe

/// What an eligible call is served with.
struct Served {
  Element element;
  Reduction reduction;
  Method method;
  size_t piece;   ///< elements that one operation can carry; larger calls take several
  Geometry most;  ///< of a launch; no blocks: as geometry_for() has it
};

/// An eligible call is served; else `pass` says why NCCL gets it.
struct Decision {
  std::optional<Served> served;
  Pass pass = Pass::kType;
};

Decision decide(const SharedFacts&, const Plan&);

/// Whether this call, the first of its communicator, makes the ranks set it up. Part of the agreement between
/// ranks whatever their versions and settings, so it may not depend on either and can never change.
bool starts_set_up(const SharedFacts&);

}  // namespace onehop
