// Memory that another process can map, with no name anywhere: an anonymous file of this process, which others
// reach through /proc while this process keeps it open. Nothing is left behind however the processes end.
// Processes that cannot look into each other share what NCCL shares by a file, in a folder that they all see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace onehop::standin {

/// All that another process needs to map the memory. Plain data, at most 64 bytes.
struct SharedHandle {
  uint64_t magic;
  int32_t pid;
  int32_t descriptor;
  uint64_t bytes;
  uint64_t inode;  ///< tells this file from a later one that got the same descriptor
};
static_assert(sizeof(SharedHandle) <= 64);

/// One mapping; the mapping ends with the object.
class SharedMemory {
 public:
  /// Zeroed memory; empty when the system has none.
  static std::optional<SharedMemory> create(size_t bytes);
  /// The same, but in the folder that ONEHOP_STANDIN_FOLDER names, if it does.
  static std::optional<SharedMemory> create_for_nccl(size_t bytes);
  /// Empty when the owner is gone, or is not ours to look into.
  static std::optional<SharedMemory> open(const SharedHandle& handle);

  SharedMemory(SharedMemory&& other) noexcept
      : handle_(other.handle_), data_(std::exchange(other.data_, nullptr)) {
    other.handle_.descriptor = -1;
  }
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  void* data() const { return data_; }
  size_t bytes() const { return handle_.bytes; }
  /// Only of memory that create() made.
  const SharedHandle& handle() const { return handle_; }

 private:
  SharedMemory(const SharedHandle& handle, void* data) : handle_(handle), data_(data) {}
  static std::optional<SharedMemory> create(int descriptor, size_t bytes);

  SharedHandle handle_{};
  void* data_ = nullptr;
};

}  // namespace onehop::standin
