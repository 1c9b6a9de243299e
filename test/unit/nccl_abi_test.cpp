// plugin/nccl_abi.hpp against the installed nccl.h. All of it is checked when this file is compiled.
#include "plugin/nccl_abi.hpp"

#include <gtest/gtest.h>
#include <nccl.h>

#include <type_traits>

namespace onehop::test {
namespace {

constexpr bool same(auto ours, auto theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}

// Enumerators. The counts notice a new one that onehop does not know: look at what it means, then extend.
static_assert(same(nccl::kSuccess, ncclSuccess));
static_assert(same(nccl::kUnhandledCudaError, ncclUnhandledCudaError));
static_assert(same(nccl::kSystemError, ncclSystemError));
static_assert(same(nccl::kInternalError, ncclInternalError));
static_assert(same(nccl::kInvalidArgument, ncclInvalidArgument));
static_assert(same(nccl::kInvalidUsage, ncclInvalidUsage));
static_assert(same(nccl::kSum, ncclSum));
static_assert(same(nccl::kProd, ncclProd));
static_assert(same(nccl::kMax, ncclMax));
static_assert(same(nccl::kMin, ncclMin));
static_assert(same(nccl::kInt8, ncclInt8));
static_assert(same(nccl::kUint8, ncclUint8));
static_assert(same(nccl::kInt32, ncclInt32));
static_assert(same(nccl::kUint32, ncclUint32));
static_assert(same(nccl::kInt64, ncclInt64));
static_assert(same(nccl::kUint64, ncclUint64));
static_assert(same(nccl::kFloat16, ncclFloat16));
static_assert(same(nccl::kFloat32, ncclFloat32));
static_assert(same(nccl::kFloat64, ncclFloat64));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 10, 0)
static_assert(same(nccl::kAvg, ncclAvg));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 13, 0)
static_assert(same(nccl::kRemoteError, ncclRemoteError));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0)
static_assert(same(nccl::kInProgress, ncclInProgress));
static_assert(same(nccl::kInProgress + 1, ncclNumResults));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
static_assert(same(nccl::kBfloat16, ncclBfloat16));
static_assert(same(nccl::kFloat8e4m3, ncclFloat8e4m3));
static_assert(same(nccl::kFloat8e5m2, ncclFloat8e5m2));
static_assert(same(nccl::kFloat8e5m2 + 1, ncclNumTypes));
static_assert(same(nccl::kAvg + 1, ncclNumOps));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
static_assert(same(nccl::kShrinkAbort, NCCL_SHRINK_ABORT));
#endif

// Functions: the same number of arguments, and each the same to a caller in machine code.
template <class Ours, class Theirs>
constexpr bool kSameForm = [] {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>)
    return std::is_same_v<Ours, Theirs>;
  else if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>)
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  else if constexpr (std::is_enum_v<Ours> || std::is_enum_v<Theirs>)
    return std::is_enum_v<Ours> && std::is_enum_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  else
    return std::is_same_v<Ours, Theirs>;
}();

template <class Ours, class Theirs>
struct SameFunction : std::false_type {};
template <class R, class... Args, class TheirR, class... TheirArgs>
requires(sizeof...(Args) ==
         sizeof...(TheirArgs)) struct SameFunction<R (*)(Args...), TheirR (*)(TheirArgs...)>
    : std::bool_constant<kSameForm<R, TheirR> && (kSameForm<Args, TheirArgs> && ...)> {
};

#define SAME_FUNCTION(name) \
  static_assert(SameFunction<decltype(nccl::Functions::name), decltype(&nccl##name)>::value, #name)
SAME_FUNCTION(AllReduce);
SAME_FUNCTION(AllGather);
SAME_FUNCTION(GroupStart);
SAME_FUNCTION(GroupEnd);
SAME_FUNCTION(CommDestroy);
SAME_FUNCTION(CommAbort);
SAME_FUNCTION(CommGetAsyncError);
SAME_FUNCTION(CommCount);
SAME_FUNCTION(CommCuDevice);
SAME_FUNCTION(CommUserRank);
SAME_FUNCTION(GetVersion);
SAME_FUNCTION(GetErrorString);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0)
SAME_FUNCTION(CommFinalize);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
SAME_FUNCTION(GroupSimulateEnd);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
SAME_FUNCTION(CommShrink);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
SAME_FUNCTION(CommRevoke);
#endif
// A function that is added to the table must be added above.
static_assert(sizeof(nccl::Functions) == 16 * sizeof(void*));

// The comparison itself notices what it is for.
static_assert(!SameFunction<int (*)(int), int (*)(long)>::value);
static_assert(!SameFunction<int (*)(int), int (*)(int, int)>::value);
static_assert(!SameFunction<int (*)(int), int (*)(int*)>::value);
static_assert(!SameFunction<int (*)(size_t), int (*)(int)>::value);

TEST(NcclInterface, IsTheInstalledHeaders) {
  RecordProperty("nccl_version_code", NCCL_VERSION_CODE);
}

}  // namespace
}  // namespace onehop::test
