#include "plugin/hooks.hpp"

#include <utility>

#include "plugin/calls.hpp"
#include "plugin/globals.hpp"

namespace onehop {
namespace {

/// A hook is a plain C function, so it can know its image only by being another function for each.
///
/// No exception may reach the caller, who may be C: what the call path uses throws nothing, and set-up
/// catches its own (calls.cpp).
template <size_t kIndex>
struct HooksOf {
  static Image& image() { return globals().images[kIndex]; }

  static nccl::Result AllReduce(const void* send, void* receive, size_t count, nccl::DataType type,
                                nccl::RedOp op, nccl::Comm comm, nccl::Stream stream) noexcept {
    return calls::all_reduce(image(), {send, receive, {count, type, op}, comm, stream});
  }
  static nccl::Result GroupStart() noexcept { return calls::group_start(image()); }
  static nccl::Result GroupEnd() noexcept { return calls::group_end(image()); }
  static nccl::Result GroupSimulateEnd(void* info) noexcept {
    return calls::group_simulate_end(image(), info);
  }
  static nccl::Result CommFinalize(nccl::Comm comm) noexcept { return calls::comm_finalize(image(), comm); }
  static nccl::Result CommDestroy(nccl::Comm comm) noexcept { return calls::comm_destroy(image(), comm); }
  static nccl::Result CommAbort(nccl::Comm comm) noexcept { return calls::comm_abort(image(), comm); }
  static nccl::Result CommRevoke(nccl::Comm comm, int flags) noexcept {
    return calls::comm_revoke(image(), comm, flags);
  }
  static nccl::Result CommShrink(nccl::Comm comm, int* exclude, int exclude_count, nccl::Comm* child,
                                 void* config, int flags) noexcept {
    return calls::comm_shrink(image(), comm, exclude, exclude_count, child, config, flags);
  }
  static nccl::Result CommGetAsyncError(nccl::Comm comm, nccl::Result* error) noexcept {
    return calls::comm_get_async_error(image(), comm, error);
  }

  static std::vector<interpose::Hook> list(nccl::Functions& original) {
    return {
        hook("ncclAllReduce", &AllReduce, original.AllReduce),
        hook("ncclGroupStart", &GroupStart, original.GroupStart),
        hook("ncclGroupEnd", &GroupEnd, original.GroupEnd),
        hook("ncclGroupSimulateEnd", &GroupSimulateEnd, original.GroupSimulateEnd),
        hook("ncclCommFinalize", &CommFinalize, original.CommFinalize),
        hook("ncclCommDestroy", &CommDestroy, original.CommDestroy),
        hook("ncclCommAbort", &CommAbort, original.CommAbort),
        hook("ncclCommRevoke", &CommRevoke, original.CommRevoke),
        hook("ncclCommShrink", &CommShrink, original.CommShrink),
        hook("ncclCommGetAsyncError", &CommGetAsyncError, original.CommGetAsyncError),
    };
  }

 private:
  template <class Hook, class Original>
  static interpose::Hook hook(const char* symbol, Hook* replacement, Original& original) {
    static_assert(std::is_convertible_v<Hook*, Original>, "the hook must have the original's signature");
    return {symbol, reinterpret_cast<void*>(replacement), reinterpret_cast<void**>(&original)};
  }
};

template <size_t... kIndex>
std::vector<interpose::Hook> list(Image& image, std::index_sequence<kIndex...>) {
  using List = std::vector<interpose::Hook> (*)(nccl::Functions&);
  constexpr List kLists[] = {&HooksOf<kIndex>::list...};
  return kLists[image.index](image.original);
}

}  // namespace

std::vector<interpose::Hook> hooks_of(Image& image) {
  return list(image, std::make_index_sequence<kMaxImages>());
}

}  // namespace onehop
