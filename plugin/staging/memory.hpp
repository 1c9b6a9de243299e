// One rank's staging memory. It lives as long as any rank of this process uses it: a peer that is one
// operation behind may still read an outbox whose owner is gone. (In another process the peer's own mapping
// keeps it alive.)
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "plugin/device.hpp"
#include "plugin/staging/shared_memory.hpp"

namespace onehop {

/// Where staging memory is.
enum class StagingKind : uint8_t {
  kPeer,  ///< in device memory; kernels of the peers reach it directly
  kHost,  ///< in pinned host memory that all ranks of the node share
};
inline constexpr StagingKind kStagingKinds[] = {StagingKind::kPeer, StagingKind::kHost};  ///< best first

constexpr const char* name_of(StagingKind kind) {
  return kind == StagingKind::kPeer ? "device memory" : "host memory";
}

class StagingMemory {
 public:
  /// `bytes` of it, not filled. Found by its address until it is gone.
  static Result<std::shared_ptr<StagingMemory>> allocate(Device&, StagingKind, size_t bytes);
  /// A peer's in another process; `handle` is its handle(), and `sent` its descriptor() if that came.
  static Result<std::shared_ptr<StagingMemory>> import(Device&, StagingKind, const MemoryHandle& handle,
                                                       Fd sent, size_t bytes);
  /// A peer's in this process; null if there is none of at least `bytes` at this address.
  static std::shared_ptr<StagingMemory> find(const void* data, size_t bytes);

  explicit StagingMemory(Device& device) : device_(device) {}
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  ~StagingMemory();

  void* data() const { return device_memory_ != nullptr ? device_memory_ : host_.data(); }
  Result<MemoryHandle> handle();
  /// Of host memory, for peers in other processes, until close_name(); -1: there is none.
  int descriptor() const { return host_.name().fd; }
  /// Nobody else needs handle() any more.
  void close_name() { host_.close_name(); }

 private:
  Status use(SharedMemory memory);

  Device& device_;
  void* device_memory_ = nullptr;
  size_t bytes_ = 0;
  bool imported_ = false, registered_ = false;
  SharedMemory host_;
};

/// This process's own staging memory, by address.
struct LiveMemory {
  std::mutex mutex;
  std::map<const void*, std::weak_ptr<StagingMemory>> by_address;
};

}  // namespace onehop
