// NCCL's functions by name: those that onehop takes over, and those without which it leaves a library alone.
#pragma once

namespace onehop {

/// Where a release has them.
inline constexpr const char* kHookedFunctions[] = {
    "ncclAllReduce",   "ncclGroupStart", "ncclGroupEnd",   "ncclGroupSimulateEnd", "ncclCommFinalize",
    "ncclCommDestroy", "ncclCommAbort",  "ncclCommRevoke", "ncclCommShrink",       "ncclCommGetAsyncError"};

/// In every release since 2.10.
inline constexpr const char* kRequiredFunctions[] = {
    "ncclAllReduce",    "ncclAllGather",    "ncclGroupStart",        "ncclGroupEnd",
    "ncclCommDestroy",  "ncclCommAbort",    "ncclCommGetAsyncError", "ncclCommCount",
    "ncclCommCuDevice", "ncclCommUserRank", "ncclGetVersion",        "ncclGetErrorString"};

}  // namespace onehop
