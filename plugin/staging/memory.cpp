#include "plugin/staging/memory.hpp"

#include <cstring>

#include "plugin/globals.hpp"

namespace onehop {

StagingMemory::~StagingMemory() {
  if (!imported_ && data() != nullptr) {
    LiveMemory& live = globals().live_memory;
    const std::lock_guard lock(live.mutex);
    const auto at = live.by_address.find(data());
    if (at != live.by_address.end() && at->second.expired()) live.by_address.erase(at);
  }
  if (registered_) device_.unregister_host(host_.data());
  if (device_memory_ == nullptr) return;
  if (imported_)
    device_.unmap_memory(device_memory_);
  else
    device_.release(device_memory_);
}

Status StagingMemory::use(SharedMemory memory) {
  host_ = std::move(memory);
  Status status = device_.register_host(host_.data(), host_.size());
  registered_ = static_cast<bool>(status);
  return status;
}

Result<std::shared_ptr<StagingMemory>> StagingMemory::allocate(Device& device, StagingKind kind,
                                                               size_t bytes) {
  auto memory = std::make_shared<StagingMemory>(device);
  if (kind == StagingKind::kHost) {
    Result<SharedMemory> shared = SharedMemory::create(bytes);
    if (!shared) return shared.error();
    if (Status status = memory->use(std::move(*shared)); !status) return status.error();
  } else {
    Result<void*> allocated = device.allocate(bytes);
    if (!allocated) return allocated.error();
    memory->device_memory_ = *allocated;
  }
  memory->bytes_ = bytes;
  LiveMemory& live = globals().live_memory;
  const std::lock_guard lock(live.mutex);
  live.by_address[memory->data()] = memory;
  return memory;
}

Result<std::shared_ptr<StagingMemory>> StagingMemory::import(Device& device, StagingKind kind,
                                                             const MemoryHandle& handle, Fd sent,
                                                             size_t bytes) {
  auto memory = std::make_shared<StagingMemory>(device);
  memory->imported_ = true;
  if (kind == StagingKind::kHost) {
    SharedMemoryName name;
    std::memcpy(&name, handle.bytes.data(), sizeof(name));
    Result<SharedMemory> shared =
        sent ? SharedMemory::adopt(std::move(sent), name, bytes) : SharedMemory::open(name, bytes);
    if (!shared) return shared.error();
    if (Status status = memory->use(std::move(*shared)); !status) return status.error();
  } else {
    Result<void*> mapped = device.import_memory(handle);
    if (!mapped) return mapped.error();
    memory->device_memory_ = *mapped;
  }
  return memory;
}

std::shared_ptr<StagingMemory> StagingMemory::find(const void* data, size_t bytes) {
  LiveMemory& live = globals().live_memory;
  const std::lock_guard lock(live.mutex);
  const auto at = live.by_address.find(data);
  std::shared_ptr<StagingMemory> found = at == live.by_address.end() ? nullptr : at->second.lock();
  return found != nullptr && found->bytes_ >= bytes ? found : nullptr;
}

Result<MemoryHandle> StagingMemory::handle() {
  if (device_memory_ != nullptr) return device_.export_memory(device_memory_);
  MemoryHandle handle;
  static_assert(sizeof(SharedMemoryName) <= sizeof(handle.bytes));
  std::memcpy(handle.bytes.data(), &host_.name(), sizeof(SharedMemoryName));
  return handle;
}

}  // namespace onehop
