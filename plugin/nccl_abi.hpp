// The part of NCCL's public C interface that onehop calls or stands in for, written down once.
//
// The plugin must build without NCCL's headers and load into jobs with any release from 2.10 on, so it
// declares what it needs itself. The interface is stable: enumerators are only ever appended.
// test/unit/nccl_abi_test.cpp compares every value here with the installed nccl.h.
#pragma once

#include <cstddef>

struct CUstream_st;

namespace onehop::nccl {

struct OpaqueComm;
using Comm = OpaqueComm*;     ///< ncclComm_t; never dereferenced
using Stream = CUstream_st*;  ///< cudaStream_t

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};

enum RedOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

/// ncclCommShrink's flag that aborts what the parent still has in flight.
inline constexpr int kShrinkAbort = 0x01;

/// The functions of one libnccl image, called as the image itself would run them (for a patched function:
/// through its trampoline). A null pointer means that the image has no such function.
struct Functions {
  Result (*AllReduce)(const void* send, void* receive, size_t count, DataType, RedOp, Comm, Stream);
  Result (*AllGather)(const void* send, void* receive, size_t count, DataType, Comm, Stream);
  Result (*GroupStart)();
  Result (*GroupEnd)();
  Result (*GroupSimulateEnd)(void* info);
  Result (*CommFinalize)(Comm);
  Result (*CommDestroy)(Comm);
  Result (*CommAbort)(Comm);
  Result (*CommRevoke)(Comm, int flags);
  Result (*CommShrink)(Comm, int* exclude, int exclude_count, Comm* child, void* config, int flags);
  Result (*CommGetAsyncError)(Comm, Result*);
  Result (*CommCount)(Comm, int*);
  Result (*CommCuDevice)(Comm, int*);
  Result (*CommUserRank)(Comm, int*);
  Result (*GetVersion)(int*);
  const char* (*GetErrorString)(Result);
};

}  // namespace onehop::nccl
