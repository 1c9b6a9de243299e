// NCCL and the CUDA runtime, loaded as a job's process loads them: the command itself needs neither.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "onehop/onehop.h"
#include "plugin/result.hpp"

namespace onehop::bench {

// Each function under its name without "cuda" or "nccl".
#define ONEHOP_BENCH_CUDA(F)   \
  F(GetDeviceCount)            \
  F(SetDevice)                 \
  F(GetDeviceProperties)       \
  F(DeviceCanAccessPeer)       \
  F(RuntimeGetVersion)         \
  F(GetErrorString)            \
  F(Memset)                    \
  F(Memcpy)                    \
  F(StreamCreateWithFlags)     \
  F(StreamSynchronize)         \
  F(StreamBeginCapture)        \
  F(StreamEndCapture)          \
  F(LaunchHostFunc)            \
  F(EventCreateWithFlags)      \
  F(EventRecord)               \
  F(EventElapsedTime)          \
  F(GraphInstantiateWithFlags) \
  F(GraphUpload)               \
  F(GraphLaunch)               \
  F(GraphDestroy)              \
  F(GraphExecDestroy)

#define ONEHOP_BENCH_NCCL(F) \
  F(GetVersion)              \
  F(GetErrorString)          \
  F(GetUniqueId)             \
  F(CommInitRank)            \
  F(CommDestroy)             \
  F(AllReduce)               \
  F(GroupStart)              \
  F(GroupEnd)

// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): the libraries' own names.
struct Cuda {
#define ONEHOP_BENCH_MEMBER(name) decltype(&::cuda##name) name = nullptr;
  ONEHOP_BENCH_CUDA(ONEHOP_BENCH_MEMBER)
  cudaError_t (*Malloc)(void**, size_t) = nullptr;  // nccl.h brings an overload of it
#undef ONEHOP_BENCH_MEMBER
};

struct Nccl {
#define ONEHOP_BENCH_MEMBER(name) decltype(&::nccl##name) name = nullptr;
  ONEHOP_BENCH_NCCL(ONEHOP_BENCH_MEMBER)
#undef ONEHOP_BENCH_MEMBER
};
// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

struct Libraries {
  Cuda cuda;
  Nccl nccl;
  bool standin = false;  ///< the CPU stand-in: times mean nothing
};

/// `nccl` and `cudart` are paths, or empty: libnccl.so.2 as the loader finds it; and of CUDA runtimes the one
/// that this libnccl brings, else the one in this program, else libcudart.so as the loader finds it.
Result<Libraries> load_libraries(const std::string& nccl, const std::string& cudart);

/// The public interface of onehop in this process, if NCCL (or the dynamic linker) has loaded it.
struct LoadedOnehop {
  decltype(&::onehopVersion) version = nullptr;
  decltype(&::onehopGetCommStatus) status = nullptr;
  explicit operator bool() const { return version != nullptr && status != nullptr; }
};
LoadedOnehop find_onehop();

}  // namespace onehop::bench
