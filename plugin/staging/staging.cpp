#include "plugin/staging/staging.hpp"

#include <cstring>
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

Staging::Staging(Device& device, uint32_t rank, StagingKind kind, const Layout& layout, uint64_t budget_ns)
    : device_(device), kind_(kind) {
  view_.rank = rank;
  view_.ranks = layout.ranks;
  view_.layout = layout;
  view_.budget_ns = budget_ns;
  view_.in_host = kind == StagingKind::kHost;
}

Layout Staging::pair_layout(const Layout& layout) {
  constexpr uint32_t kPacks = kPairPacks * Layout::expansion(WordKind::kFlag);
  return {2, layout.inbox != 0 ? kPacks : 0, layout.outbox != 0 ? kPacks : 0};
}

uint64_t Staging::shared_bytes(const Layout& layout) {
  return layout.bytes() + layout.ranks * pair_layout(layout).bytes();
}

uint64_t Staging::private_bytes(const Layout& layout) {
  return own_bytes(layout) + layout.ranks * own_bytes(pair_layout(layout));
}

Status Staging::prepare(CommView& view, uint64_t at, Stream stream) {
  view.state = reinterpret_cast<State*>(private_ + at);
  view.shadows = reinterpret_cast<Pack*>(private_ + at + sizeof(State));
  Status done = device_.copy(view.state, &static_cast<Pinned*>(pinned_)->first_state, sizeof(State), stream);
  // Shadows begin as the outboxes do.
  if (done && view.layout.shadow_bytes() != 0)
    done = device_.fill(view.shadows, 0xFF, view.layout.shadow_bytes(), stream);
  return done;
}

Result<CommView> Staging::pair_view(uint32_t peer, uint32_t round, Stream stream) {
  CommView pair;
  pair.layout = pair_layout(view_.layout);
  pair.ranks = 2;
  pair.rank = view_.rank < peer ? 0 : 1;
  const uint64_t at = view_.layout.bytes() + round * pair.layout.bytes();
  pair.own = view_.own + at;
  pair.staging(1 - pair.rank) = view_.staging(peer) + at;
  pair.control = view_.control;
  pair.in_host = view_.in_host;
  const Status prepared = prepare(pair, own_bytes(view_.layout) + round * own_bytes(pair.layout), stream);
  if (!prepared) return prepared.error();
  return pair;
}

Staging::~Staging() {
  const bool host = kind_ == StagingKind::kHost;
  peers_.clear();
  memory_.reset();
  if (host && private_ != nullptr) device_.release(private_);
  if (pinned_ != nullptr) device_.release_pinned(pinned_);
}

Status Staging::allocate(Stream stream) {
  Result<void*> pinned = device_.allocate_pinned(sizeof(Pinned));
  if (!pinned) return pinned.error();
  pinned_ = *pinned;
  auto* shared = new (pinned_) Pinned;
  shared->first_state.turn = first_turn();
  view_.control = &shared->control;

  const Layout& layout = view_.layout;
  const uint64_t reachable = shared_bytes(layout), sentinels = layout.sentinel_bytes();
  const bool host = kind_ == StagingKind::kHost;
  Result<std::shared_ptr<StagingMemory>> memory =
      StagingMemory::allocate(device_, kind_, host ? reachable : bytes());
  if (!memory) return memory.error();
  memory_ = std::move(*memory);
  view_.own = static_cast<unsigned char*>(memory_->data());
  private_ = view_.own + reachable;
  if (host) {
    Result<void*> allocated = device_.allocate(private_bytes(layout));
    private_ = allocated ? static_cast<unsigned char*>(*allocated) : nullptr;
    if (!allocated) return allocated.error();
  }

  // An empty sentinel word is all ones; an empty flag word carries flag 0, which is no epoch's until the
  // rotation has renewed it. The pairs of the probe never come to epochs of all ones.
  const uint64_t all = layout.bytes();
  Status filled;
  if (host) {
    std::memset(view_.own, 0xFF, sentinels);  // the flags are zero already
    std::memset(view_.own + all, 0xFF, reachable - all);
  } else {
    filled = device_.fill(view_.own, 0xFF, sentinels, stream);
    if (filled) filled = device_.fill(view_.own + sentinels, 0, all - sentinels, stream);
    if (filled) filled = device_.fill(view_.own + all, 0xFF, reachable - all, stream);
  }
  if (filled) filled = prepare(view_, 0, stream);
  return filled;
}

Result<StagingAddress> Staging::address(uint64_t process, int device_index, bool shared) {
  StagingAddress address;
  address.process = process;
  address.pointer = reinterpret_cast<uint64_t>(view_.own);
  address.device = device_index;
  if (shared) {
    Result<MemoryHandle> handle = memory_->handle();
    if (!handle) return handle.error();
    address.handle = *handle;
  }
  return address;
}

Status Staging::map(uint32_t peer, const StagingAddress& address, uint64_t process, int device_index) {
  std::shared_ptr<StagingMemory> memory;
  if (address.process == process) {
    if (kind_ == StagingKind::kPeer && address.device != device_index) {
      if (Status enabled = device_.enable_peer(address.device); !enabled) return enabled;
    }
    memory = StagingMemory::find(reinterpret_cast<const void*>(address.pointer));
    if (memory == nullptr) return Error{"the peer's staging memory is gone"};
  } else {
    auto imported = StagingMemory::import(device_, kind_, address.handle, shared_bytes(view_.layout));
    if (!imported) return imported.error();
    memory = std::move(*imported);
  }
  view_.staging(peer) = static_cast<unsigned char*>(memory->data());
  peers_.push_back(std::move(memory));
  return {};
}

}  // namespace onehop
