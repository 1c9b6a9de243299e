// The memory of one rank of a communicator: its inbox, which the peers write, its mappings of their inboxes,
// and what it alone uses.
#pragma once

#include <memory>
#include <vector>

#include "kernels/operation.hpp"
#include "plugin/device.hpp"

namespace onehop {

/// What a peer must know to reach an inbox.
struct InboxAddress {
  uint64_t process = 0;  ///< identity of the owner's process (plugin/globals.hpp)
  uint64_t pointer = 0;  ///< valid in the owner's process
  int32_t device = 0;    ///< device index in the owner's process
  MemoryHandle handle;   ///< for other processes
};

/// Owns everything; frees it at the end. Peers must not write to the inbox any more by then: that is so once
/// the last kernel of this rank has returned (kernels/protocol/README.md), but not after an abort.
class Staging {
 public:
  /// `device` is current in every call, also in the destructor's.
  Staging(Device& device, uint32_t rank, InboxLayout layout, uint64_t budget_ns);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// Allocates this rank's memory and fills it, in the order of `stream`.
  Status allocate(Stream stream);
  /// Where the peers find the inbox. `shared`: some peer is in another process.
  Result<InboxAddress> address(uint64_t process, int device_index, bool shared);
  /// Maps the inbox of rank `peer`.
  Status map(uint32_t peer, const InboxAddress&, uint64_t process, int device_index);

  const CommView& view() const { return view_; }
  CommView& view() { return view_; }
  /// Of device memory: the inbox, and behind it the state.
  uint64_t bytes() const { return view_.layout.bytes() + sizeof(State); }

 private:
  Device& device_;
  CommView view_;
  void* inbox_ = nullptr;
  void* pinned_ = nullptr;
  std::vector<void*> imported_;
};

}  // namespace onehop
