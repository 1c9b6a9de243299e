// How communicators end: each of these functions tells onehop before or after NCCL, in the order that its
// reason says.
#include "plugin/calls.hpp"
#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"

namespace onehop::calls {
namespace {

/// Keeps the memory of a communicator for the rest of the process: after an abort peers may still write to
/// it.
void retire(std::unique_ptr<Communicator> comm) {
  (void)comm.release();
}

/// Null also in a forked child, where nothing of the parent's GPU may be touched.
Communicator* find(nccl::Comm handle) {
  return globals().forked ? nullptr : globals().registry.find(handle);
}
std::unique_ptr<Communicator> remove(nccl::Comm handle) {
  return globals().forked ? nullptr : globals().registry.remove(handle);
}

}  // namespace

nccl::Result comm_finalize(Image& image, nccl::Comm handle) {
  if (Communicator* comm = find(handle)) {
    // Finalize promises that everything enqueued is done, and lets nothing more come.
    comm->close("ncclCommFinalize");
    comm->drain();
  }
  return image.original.CommFinalize(handle);
}

nccl::Result comm_destroy(Image& image, nccl::Comm handle) {
  // First out of the registry: from the moment NCCL frees it another communicator may get the same handle.
  std::unique_ptr<Communicator> comm = remove(handle);
  if (comm != nullptr) comm->drain();
  const nccl::Result result = image.original.CommDestroy(handle);
  if (comm == nullptr) return result;
  comm->leave_statistics();
  if (comm->stopped() != Stop::kNone) retire(std::move(comm));
  return result;
}

nccl::Result comm_abort(Image& image, nccl::Comm handle) {
  std::unique_ptr<Communicator> comm = remove(handle);
  if (comm != nullptr) comm->abort();
  const nccl::Result result = image.original.CommAbort(handle);
  if (comm == nullptr) return result;
  comm->leave_statistics();
  if (comm->on()) retire(std::move(comm));
  return result;
}

nccl::Result comm_revoke(Image& image, nccl::Comm handle, int flags) {
  if (Communicator* comm = find(handle)) comm->abort();
  return image.original.CommRevoke(handle, flags);
}

nccl::Result comm_shrink(Image& image, nccl::Comm handle, int* exclude, int exclude_count, nccl::Comm* child,
                         void* config, int flags) {
  if ((flags & nccl::kShrinkAbort) != 0)
    if (Communicator* comm = find(handle)) comm->abort();
  return image.original.CommShrink(handle, exclude, exclude_count, child, config, flags);
}

nccl::Result comm_get_async_error(Image& image, nccl::Comm handle, nccl::Result* error) {
  const nccl::Result result = image.original.CommGetAsyncError(handle, error);
  if (result != nccl::kSuccess || error == nullptr || *error != nccl::kSuccess) return result;
  const Communicator* comm = find(handle);
  if (comm != nullptr && comm->stopped() == Stop::kTimeout) *error = nccl::kRemoteError;
  return result;
}

}  // namespace onehop::calls
