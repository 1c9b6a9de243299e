// The memory functions of the CUDA runtime: allocation, and sharing between processes.

#include <cstring>

#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/memory.hpp"

using namespace onehop::standin;

namespace {

cudaError_t check_unsafe() {
  Lock lock;
  return check_unsafe_call(lock);
}

cudaError_t allocate_for_user(MemoryKind kind, void** memory, size_t bytes) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (const cudaError_t error = check_unsafe()) return error;
  if (bytes == 0) return cudaSuccess;
  *memory = allocate(kind, bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t release_for_user(MemoryKind kind, void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t error = check_unsafe()) return error;
  return release(kind, memory) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return report(allocate_for_user(MemoryKind::kDevice, memory, bytes));
}

cudaError_t cudaFree(void* memory) {
  return report(release_for_user(MemoryKind::kDevice, memory));
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return report(allocate_for_user(MemoryKind::kPinned, memory, bytes));
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return report(allocate_for_user(MemoryKind::kPinned, memory, bytes));
}

cudaError_t cudaFreeHost(void* memory) {
  return report(release_for_user(MemoryKind::kPinned, memory));
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  if (memory == nullptr || bytes == 0) return report(cudaErrorInvalidValue);
  if (const cudaError_t error = check_unsafe()) return report(error);
  return report(register_memory(memory, bytes) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void* memory) {
  return report(release_for_user(MemoryKind::kRegistered, memory));
}

cudaError_t cudaHostGetDevicePointer(void** device_memory, void* memory, unsigned) {
  if (device_memory == nullptr || !find_memory(memory)) return report(cudaErrorInvalidValue);
  *device_memory = memory;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  *attributes = {};
  attributes->device = -2;
  attributes->type = cudaMemoryTypeUnregistered;
  const std::optional<MemoryInfo> info = find_memory(pointer);
  if (!info) return cudaSuccess;
  const bool on_host = info->kind == MemoryKind::kPinned || info->kind == MemoryKind::kRegistered;
  attributes->device = info->device;
  attributes->type = on_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->hostPointer = on_host ? const_cast<void*>(pointer) : nullptr;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  if (handle == nullptr) return report(cudaErrorInvalidValue);
  const std::optional<SharedHandle> shared = export_memory(memory);
  if (!shared) return report(cudaErrorInvalidValue);
  static_assert(sizeof *shared <= sizeof *handle);
  *handle = {};
  std::memcpy(handle, &*shared, sizeof *shared);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  if (memory == nullptr) return report(cudaErrorInvalidValue);
  if (const cudaError_t error = check_unsafe()) return report(error);
  SharedHandle shared{};
  std::memcpy(&shared, &handle, sizeof shared);
  *memory = import_memory(shared);
  return report(*memory != nullptr ? cudaSuccess : cudaErrorMapBufferObjectFailed);
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return report(release_for_user(MemoryKind::kImported, memory));
}

}  // extern "C"
