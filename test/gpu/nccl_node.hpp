// All ranks of an NCCL communicator in one process: an ordinary program that knows nccl.h and the CUDA
// runtime. Several ranks may share a GPU (NCCL 2.30 or newer, NCCL_MULTI_RANK_GPU_ENABLE=1). Knows of onehop
// only what dlopen finds.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "onehop/onehop.h"

namespace onehop::test {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::fflush(nullptr);
  _exit(1);
}
inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}
inline void must(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail(std::string(what) + ": " + ncclGetErrorString(result));
}
#define MUST(call) ::onehop::test::must(call, #call)

/// The plugin that NCCL loaded, if it did.
class LoadedOnehop {
 public:
  LoadedOnehop() {
    const char* path = std::getenv("NCCL_NET_PLUGIN");
    if (path == nullptr) path = std::getenv("LD_PRELOAD");
    if (path != nullptr) handle_ = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  }
  bool found() const { return handle_ != nullptr; }
  onehopStatistics statistics() const {
    onehopStatistics s{};
    if (found()) function<int(onehopStatistics*)>("onehopGetStatistics")(&s);
    return s;
  }
  onehopCommStatus status(ncclComm_t comm) const {
    onehopCommStatus s{};
    if (found()) function<int(ncclComm*, onehopCommStatus*)>("onehopGetCommStatus")(comm, &s);
    return s;
  }
  void enable(ncclComm_t comm, bool on) const {
    if (function<int(ncclComm*, int)>("onehopEnable")(comm, on ? 1 : 0) != 0) fail("onehop is not on");
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, name));
  }
  void* handle_ = nullptr;
};

class NcclNode {
 public:
  explicit NcclNode(int ranks)
      : comms(static_cast<size_t>(ranks)), streams(comms.size()), devices(comms.size()) {
    int found = 0;
    MUST(cudaGetDeviceCount(&found));
    for (int r = 0; r < ranks; ++r) devices[static_cast<size_t>(r)] = r % found;
    MUST(ncclCommInitAll(comms.data(), ranks, devices.data()));
    for (size_t r = 0; r < size(); ++r) {
      MUST(cudaSetDevice(devices[r]));
      MUST(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
    }
  }
  ~NcclNode() {
    for (ncclComm_t comm : comms) MUST(ncclCommDestroy(comm));
  }
  NcclNode(const NcclNode&) = delete;
  NcclNode& operator=(const NcclNode&) = delete;

  size_t size() const { return comms.size(); }

  /// Each rank's part, one thread for all: in a group.
  void in_group(const std::function<void(size_t)>& part) {
    MUST(ncclGroupStart());
    for (size_t r = 0; r < size(); ++r) {
      MUST(cudaSetDevice(devices[r]));
      part(r);
    }
    MUST(ncclGroupEnd());
  }
  /// Each rank's part in a thread of its own.
  void in_threads(const std::function<void(size_t)>& part) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < size(); ++r)
      threads.emplace_back([&, r] {
        MUST(cudaSetDevice(devices[r]));
        part(r);
      });
    for (std::thread& t : threads) t.join();
  }
  void synchronize() {
    for (size_t r = 0; r < size(); ++r) {
      MUST(cudaSetDevice(devices[r]));
      MUST(cudaStreamSynchronize(streams[r]));
    }
  }

  bool shares_devices() const { return std::count(devices.begin(), devices.end(), devices[0]) > 1; }

  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;
  std::vector<int> devices;
};

}  // namespace onehop::test
