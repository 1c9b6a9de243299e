// The plan of a communicator and the decision about a call. Everything here is a pure function of facts that
// are equal on all ranks: a decision that differed between ranks would hang the job.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/operation.hpp"
#include "plugin/nccl_abi.hpp"
#include "plugin/pass.hpp"
#include "plugin/settings.hpp"

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

/// What a communicator takes.
struct Plan {
  uint64_t max_bytes = 0;  ///< largest call
  bool takes_fp8 = false;  ///< NCCL reduces fp8 on every rank; elsewhere it returns an error, which it must
                           ///< see the call for
};

/// The plan of a communicator of `ranks` ranks under settings that all of them share.
Plan make_plan(const Settings&, uint32_t ranks);

/// Packs of payload that a source must be able to send in one call under this plan.
uint32_t capacity_for(const Plan&);

/// Staging memory of one rank, for one communicator. The largest that a plan may need.
inline constexpr uint64_t kStagingBudget = 16 << 20;

/// What a method serves an eligible call with.
struct Served {
  Element element;
  Reduction reduction;
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
