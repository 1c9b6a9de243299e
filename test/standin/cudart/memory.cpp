#include "test/standin/cudart/memory.hpp"

#include <map>
#include <mutex>

#include "test/standin/cudart/devices.hpp"
#include "test/standin/cudart/stream.hpp"

namespace onehop::standin {
namespace {

struct Allocation {
  MemoryInfo info;
  std::optional<SharedMemory> memory;  ///< none for memory that the user registered
};

struct Allocations {
  std::mutex mutex;
  std::map<const char*, Allocation> by_address;
};

// Never destroyed: the threads of streams outlive main().
Allocations& allocations() {
  static auto* all = new Allocations;
  return *all;
}

void* add(MemoryKind kind, std::optional<SharedMemory> memory) {
  if (!memory) return nullptr;
  void* const base = memory->data();
  const MemoryInfo info{kind, current_device(), base, memory->bytes()};
  std::lock_guard guard(allocations().mutex);
  allocations().by_address.emplace(static_cast<const char*>(base), Allocation{info, std::move(memory)});
  return base;
}

const Allocation* find(const void* address) {
  const auto* const byte = static_cast<const char*>(address);
  auto next = allocations().by_address.upper_bound(byte);
  if (next == allocations().by_address.begin()) return nullptr;
  const Allocation& allocation = std::prev(next)->second;
  return byte < static_cast<const char*>(allocation.info.base) + allocation.info.bytes ? &allocation
                                                                                       : nullptr;
}

}  // namespace

void* allocate(MemoryKind kind, size_t bytes) {
  return add(kind, SharedMemory::create(bytes));
}

bool release(MemoryKind kind, void* memory) {
  const std::optional<MemoryInfo> info = find_memory(memory);
  if (!info || info->base != memory || info->kind != kind) return false;
  {
    Lock lock;
    drain_device(lock, info->device);
  }
  std::lock_guard guard(allocations().mutex);
  return allocations().by_address.erase(static_cast<const char*>(memory)) == 1;
}

std::optional<MemoryInfo> find_memory(const void* address) {
  std::lock_guard guard(allocations().mutex);
  const Allocation* allocation = find(address);
  return allocation != nullptr ? std::optional(allocation->info) : std::nullopt;
}

std::optional<SharedHandle> export_memory(void* memory) {
  std::lock_guard guard(allocations().mutex);
  const Allocation* allocation = find(memory);
  if (allocation == nullptr || allocation->info.kind != MemoryKind::kDevice) return std::nullopt;
  return allocation->memory->handle();
}

void* import_memory(const SharedHandle& handle) {
  return add(MemoryKind::kImported, SharedMemory::open(handle));
}

bool register_memory(void* memory, size_t bytes) {
  std::lock_guard guard(allocations().mutex);
  if (find(memory) != nullptr) return false;
  const MemoryInfo info{MemoryKind::kRegistered, current_device(), memory, bytes};
  allocations().by_address.emplace(static_cast<const char*>(memory), Allocation{info, std::nullopt});
  return true;
}

}  // namespace onehop::standin
