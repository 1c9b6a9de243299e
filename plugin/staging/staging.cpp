#include "plugin/staging/staging.hpp"

#include <new>

namespace onehop {
namespace {

/// Pinned memory of a communicator: what kernels and host share, and the first state on its way to the
/// device.
struct Pinned {
  alignas(128) Control control;
  alignas(128) State first_state;
};

}  // namespace

Staging::Staging(Device& device, uint32_t rank, InboxLayout layout, uint64_t budget_ns) : device_(device) {
  view_.rank = rank;
  view_.ranks = layout.sources;
  view_.layout = layout;
  view_.budget_ns = budget_ns;
}

Staging::~Staging() {
  for (void* memory : imported_) device_.unmap_memory(memory);
  if (inbox_ != nullptr) device_.release(inbox_);
  if (pinned_ != nullptr) device_.release_pinned(pinned_);
}

Status Staging::allocate(Stream stream) {
  Result<void*> pinned = device_.allocate_pinned(sizeof(Pinned));
  if (!pinned) return pinned.error();
  pinned_ = *pinned;
  Result<void*> inbox = device_.allocate(bytes());
  if (!inbox) return inbox.error();
  inbox_ = *inbox;

  auto* shared = new (pinned_) Pinned;
  shared->first_state.turn = first_turn();
  view_.control = &shared->control;
  view_.own = static_cast<unsigned char*>(inbox_);
  view_.state = reinterpret_cast<State*>(view_.own + view_.layout.bytes());
  // An empty sentinel word is all ones; an empty flag word carries flag 0, which is no epoch's until the
  // sweep has renewed it.
  const size_t sentinels = view_.layout.sentinel_bytes();
  Status filled = device_.fill(inbox_, 0xFF, sentinels, stream);
  if (filled) filled = device_.fill(view_.own + sentinels, 0, view_.layout.bytes() - sentinels, stream);
  if (filled) filled = device_.copy(view_.state, &shared->first_state, sizeof(State), stream);
  return filled;
}

Result<InboxAddress> Staging::address(uint64_t process, int device_index, bool shared) {
  InboxAddress address;
  address.process = process;
  address.pointer = reinterpret_cast<uint64_t>(inbox_);
  address.device = device_index;
  if (shared) {
    Result<MemoryHandle> handle = device_.export_memory(inbox_);
    if (!handle) return handle.error();
    address.handle = *handle;
  }
  return address;
}

Status Staging::map(uint32_t peer, const InboxAddress& address, uint64_t process, int device_index) {
  if (address.process == process) {
    if (address.device != device_index) {
      if (Status enabled = device_.enable_peer(address.device); !enabled) return enabled;
    }
    view_.inbox(peer) = reinterpret_cast<unsigned char*>(address.pointer);
    return {};
  }
  Result<void*> memory = device_.import_memory(address.handle);
  if (!memory) return memory.error();
  imported_.push_back(*memory);
  view_.inbox(peer) = static_cast<unsigned char*>(*memory);
  return {};
}

}  // namespace onehop
