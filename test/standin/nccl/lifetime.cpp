// Ending communicators, and asking how they are.

#include "test/standin/cudart/places.hpp"
#include "test/standin/nccl/api.hpp"
#include "test/standin/nccl/group.hpp"
#include "test/standin/nccl/log.hpp"

using namespace onehop::standin;

namespace {

ncclResult_t add_and_end(Job job) {
  start_group();
  add_job(std::move(job));
  return end_group();
}

/// The handle is dead afterwards; work that still runs keeps the communicator itself.
void release(ncclComm_t comm) {
  comm->communicator->release_events();
  end_handle(comm);
}

/// Blocks even if the communicator does not: nobody could look at its state afterwards.
ncclResult_t end_communicator(ncclComm_t comm, bool drain) {
  return add_and_end({nullptr, [comm, drain] {
                        const CommunicatorRef communicator = comm->communicator;
                        come_to("end of a communicator");
                        wait_until(communicator->cancelled,
                                   [&] { return communicator->state != ncclInProgress; });
                        if (drain) communicator->drain();
                        release(comm);
                        return ncclSuccess;
                      }});
}

}  // namespace

STANDIN_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  const CommunicatorRef communicator = comm->communicator;
  if (communicator->revoked) return note_error(ncclInvalidUsage);
  if (const ncclResult_t error = check_ready(*communicator)) return note_error(error);
  if (communicator->finalized.exchange(true)) return note_error(ncclInvalidArgument);
  return add_and_end({communicator, [communicator] {
                        communicator->drain();
                        return ncclSuccess;
                      }});
}

STANDIN_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (const ncclResult_t error = check_handle(comm)) return error;
  return end_communicator(comm, true);
}

STANDIN_API(ncclResult_t, ncclCommAbort, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (const ncclResult_t error = check_handle(comm)) return error;
  // At once, also inside a group: someone may be waiting.
  comm->communicator->stop = true;
  comm->communicator->cancelled = true;
  return end_communicator(comm, false);
}

STANDIN_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int flags) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (flags != NCCL_REVOKE_DEFAULT) return note_error(ncclInvalidArgument);
  const CommunicatorRef communicator = comm->communicator;
  communicator->revoked = true;
  communicator->stop = true;
  return add_and_end({communicator, [communicator] {
                        communicator->drain();
                        return ncclSuccess;
                      }});
}

STANDIN_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* error) {
  if (const ncclResult_t invalid = check_handle(comm)) return invalid;
  if (error == nullptr) return ncclInvalidArgument;
  *error = comm->communicator->state;
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int* count) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (count == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t error = check_ready(*comm->communicator)) return error;
  *count = comm->communicator->ranks;
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int* device) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (device == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t error = check_ready(*comm->communicator)) return error;
  *device = comm->communicator->device;
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int* rank) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (rank == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t error = check_ready(*comm->communicator)) return error;
  *rank = comm->communicator->rank;
  return ncclSuccess;
}
