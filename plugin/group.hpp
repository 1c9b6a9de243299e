// ncclGroupStart/End as onehop sees them. NCCL's own depth is hidden in a thread-local variable, so onehop
// keeps one beside it.
#pragma once

#include <optional>
#include <vector>

#include "plugin/device.hpp"
#include "plugin/images.hpp"
#include "plugin/plan.hpp"

namespace onehop {

/// One ncclAllReduce as it came in.
struct Call {
  const void* send;
  void* receive;
  SharedFacts facts;
  nccl::Comm comm;
  nccl::Stream stream;

  uint64_t bytes() const { return facts.count * bytes_of(facts.type); }
};

/// The calling thread's group on one image.
struct Group {
  struct Queued {
    Call call;
    bool decided;  ///< the communicator was set up and takes the call; else it is set up at the end of the
                   ///< group
  };

  /// A call that NCCL enqueues at the end of the group.
  struct Passed {
    nccl::Comm comm = nullptr;
    nccl::Stream stream = nullptr;
    std::optional<StreamState> state{};  ///< of the stream, as Communicator::before_passed() found it
  };

  bool dropped = false;        ///< NCCL will drop the group: a call in it had a wrong argument
  int depth = 0;               ///< open ncclGroupStarts that onehop has seen
  std::vector<Passed> passed;  ///< on communicators that are on
  std::vector<Queued> queued;  ///< calls that wait for the outermost end; keeps its capacity
};

Group& group_of(const Image&);

}  // namespace onehop
