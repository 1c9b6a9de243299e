// The way of a call, from NCCL's entry to the kernel or back to NCCL. Read calls.cpp from top to bottom.
#pragma once

#include "plugin/group.hpp"
#include "plugin/images.hpp"

namespace onehop::calls {

nccl::Result all_reduce(Image&, const Call&);

nccl::Result group_start(Image&);
nccl::Result group_end(Image&);
nccl::Result group_simulate_end(Image&, void* info);

// Ends of communicators (comm_ends.cpp). ncclCommSplit is not among them: it ends nothing, and its child is a
// communicator like any other.
nccl::Result comm_finalize(Image&, nccl::Comm);
nccl::Result comm_destroy(Image&, nccl::Comm);
nccl::Result comm_abort(Image&, nccl::Comm);
nccl::Result comm_revoke(Image&, nccl::Comm, int flags);
nccl::Result comm_shrink(Image&, nccl::Comm, int* exclude, int exclude_count, nccl::Comm* child, void* config,
                         int flags);
nccl::Result comm_get_async_error(Image&, nccl::Comm, nccl::Result* error);

}  // namespace onehop::calls
