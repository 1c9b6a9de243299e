// Groups: what the calls between ncclGroupStart and ncclGroupEnd leave to do, per thread.
#pragma once

#include <functional>

#include "test/standin/nccl/operation.hpp"

namespace onehop::standin {

/// Work of the host: making, splitting and ending communicators.
struct Job {
  /// If it does not block, its state is ncclInProgress until the job is done. Null: the end of a
  /// communicator, which has no state to look at afterwards.
  CommunicatorRef communicator;
  std::function<ncclResult_t()> run;
};

/// Every call that can be grouped is a group of its own: it starts one, adds its work, and ends it.
void start_group();
/// Remembers an error inside a group: the outermost end returns it and drops the group.
ncclResult_t note_error(ncclResult_t error);
void add_job(Job job);
void add_operation(Operation operation);
/// The outermost end does the work. With `simulation` it is dropped instead.
ncclResult_t end_group(ncclSimInfo_t* simulation = nullptr);

}  // namespace onehop::standin
