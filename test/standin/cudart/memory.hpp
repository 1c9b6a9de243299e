// Memory of the stand-in: each allocation is a mapping of its own that other processes can map too.
#pragma once

#include <optional>

#include "test/standin/shared_memory.hpp"

namespace onehop::standin {

enum class MemoryKind { kDevice, kPinned, kImported, kRegistered };

struct MemoryInfo {
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  void* base = nullptr;
  size_t bytes = 0;
};

/// Zeroed memory of the current device; null when the system has none.
void* allocate(MemoryKind kind, size_t bytes);
/// Waits for all work of the memory's device, as CUDA does. False: no such allocation of this kind.
bool release(MemoryKind kind, void* memory);
/// The allocation that contains an address.
std::optional<MemoryInfo> find_memory(const void* address);

std::optional<SharedHandle> export_memory(void* memory);
void* import_memory(const SharedHandle& handle);  ///< null: the owner is gone, or out of reach

/// The user's own memory, registered as pinned.
bool register_memory(void* memory, size_t bytes);

}  // namespace onehop::standin
