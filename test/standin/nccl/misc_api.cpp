// Versions, messages, groups, memory and registration.

#include "plugin/device.hpp"
#include "test/standin/nccl/api.hpp"
#include "test/standin/nccl/group.hpp"
#include "test/standin/nccl/loader.hpp"
#include "test/standin/nccl/log.hpp"

using namespace onehop::standin;

extern "C" onehop::Device* onehop_standin_cpu_device(uint32_t interface_version);

/// Where the plugin looks for the stand-in's device: in the libnccl image that it found.
extern "C" onehop::Device* onehop_standin_device(uint32_t interface_version) {
  return onehop_standin_cpu_device(interface_version);
}

STANDIN_API(ncclResult_t, ncclGetVersion, int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = nccl_version();
  return ncclSuccess;
}

STANDIN_API(const char*, ncclGetErrorString, ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

STANDIN_API(const char*, ncclGetLastError, ncclComm_t) {
  return last_error();
}

STANDIN_API(ncclResult_t, ncclGroupStart, void) {
  start_group();
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclGroupEnd, void) {
  return end_group();
}

STANDIN_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* simulation) {
  return end_group(simulation);
}

STANDIN_API(ncclResult_t, ncclMemAlloc, void** memory, size_t bytes) {
  if (memory == nullptr || bytes == 0) return ncclInvalidArgument;
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

STANDIN_API(ncclResult_t, ncclMemFree, void* memory) {
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

STANDIN_API(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void* buffer, size_t, void** handle) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (handle == nullptr) return ncclInvalidArgument;
  *handle = buffer;
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void*) {
  return check_handle(comm);
}

STANDIN_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void*, size_t, ncclWindow_t* window, int) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (window == nullptr) return ncclInvalidArgument;
  *window = nullptr;  // as NCCL says that a window is not supported here
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t) {
  return check_handle(comm);
}
