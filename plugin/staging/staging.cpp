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
  return prepare(view, at, at + sizeof(State), stream);
}

Status Staging::prepare(CommView& view, uint64_t state, uint64_t shadows, Stream stream) {
  view.state = reinterpret_cast<State*>(private_ + state);
  view.shadows = reinterpret_cast<Pack*>(private_ + shadows);
  Status done = device_.copy(view.state, &static_cast<Pinned*>(pinned_)->first_state, sizeof(State), stream);
  // Shadows begin as the outboxes do.
  if (done && view.layout.shadow_bytes() != 0)
    done = device_.fill(view.shadows, 0xFF, view.layout.shadow_bytes(), stream);
  return done;
}

CommView Staging::pair_of(uint32_t peer, const Layout& layout, uint64_t at) {
  CommView pair;
  pair.layout = layout;
  pair.ranks = 2;
  pair.rank = view_.rank < peer ? 0 : 1;
  pair.own = view_.own + at;
  pair.staging(1 - pair.rank) = view_.staging(peer) + at;
  pair.control = view_.control;
  pair.in_host = view_.in_host;
  pair.budget_ns = view_.budget_ns;
  pair.max_blocks = view_.max_blocks;
  return pair;
}

Result<CommView> Staging::pair_view(uint32_t peer, uint32_t round, Stream stream) {
  const Layout layout = pair_layout(view_.layout);
  CommView pair = pair_of(peer, layout, view_.layout.bytes() + round * layout.bytes());
  const Status prepared = prepare(pair, own_bytes(view_.layout) + round * own_bytes(layout), stream);
  if (!prepared) return prepared.error();
  return pair;
}

Layout Staging::lent_layout(const Layout& real, uint32_t ranks, uint32_t packs) {
  return {ranks, real.inbox != 0 ? packs : 0, real.outbox != 0 ? packs : 0};
}

uint32_t Staging::lendable(const Layout& real, uint32_t rounds) {
  const Layout all = lent_layout(real, real.ranks, kLentToAll);
  for (uint32_t packs = kLentToPairs; packs >= kLentToAll; packs /= 2) {
    const Layout pair = lent_layout(real, 2, packs);
    if (all.bytes() + rounds * pair.bytes() <= real.bytes() &&
        all.shadow_bytes() + rounds * pair.shadow_bytes() <= real.shadow_bytes())
      return packs;
  }
  return 0;
}

Result<Staging::Lent> Staging::lend(uint32_t rounds, const std::vector<uint32_t>& round, Stream stream) {
  const Layout& real = view_.layout;
  Lent lent{view_, std::vector<CommView>(view_.ranks), 0};
  lent.packs = lendable(real, rounds);
  lent.all.layout = lent_layout(real, view_.ranks, kLentToAll);
  Status done = empty(view_.own, real.bytes(), stream);
  if (done) done = prepare(lent.all, 0, stream);
  const Layout pair = lent_layout(real, 2, lent.packs), small = pair_layout(real);
  for (uint32_t peer = 0; peer < view_.ranks && done; ++peer) {
    if (peer == view_.rank) continue;
    const uint64_t place = round[peer];
    lent.with[peer] = pair_of(peer, pair, lent.all.layout.bytes() + place * pair.bytes());
    done = prepare(lent.with[peer], own_bytes(real) + place * own_bytes(small),
                   sizeof(State) + lent.all.layout.shadow_bytes() + place * pair.shadow_bytes(), stream);
  }
  if (!done) return done.error();
  return lent;
}

Status Staging::empty(unsigned char* memory, uint64_t bytes, Stream stream) {
  if (kind_ != StagingKind::kHost) return device_.fill(memory, 0xFF, bytes, stream);
  std::memset(memory, 0xFF, bytes);
  return {};
}

Status Staging::reset(Stream stream) {
  // An empty sentinel word is all ones; an empty flag word carries flag 0, which is no epoch's until the
  // rotation has renewed it. The pairs of the probe never come to epochs of all ones.
  const uint64_t sentinels = view_.layout.sentinel_bytes(), flags = view_.layout.bytes() - sentinels;
  Status done = empty(view_.own, sentinels, stream);
  if (kind_ == StagingKind::kHost)
    std::memset(view_.own + sentinels, 0, flags);
  else if (done)
    done = device_.fill(view_.own + sentinels, 0, flags, stream);
  return done ? prepare(view_, 0, stream) : done;
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
  const uint64_t reachable = shared_bytes(layout);
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

  const uint64_t all = layout.bytes();
  const Status emptied = empty(view_.own + all, reachable - all, stream);
  return emptied ? reset(stream) : emptied;
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

Status Staging::map(uint32_t peer, const StagingAddress& address, uint64_t process, int device_index,
                    Fd sent) {
  std::shared_ptr<StagingMemory> memory;
  if (address.process == process) {
    if (kind_ == StagingKind::kPeer && address.device != device_index) {
      if (Status enabled = device_.enable_peer(address.device); !enabled) return enabled;
    }
    memory = StagingMemory::find(reinterpret_cast<const void*>(address.pointer), shared_bytes(view_.layout));
    if (memory == nullptr) return Error{"the peer's staging memory is gone"};
  } else {
    auto imported =
        StagingMemory::import(device_, kind_, address.handle, std::move(sent), shared_bytes(view_.layout));
    if (!imported) return imported.error();
    memory = std::move(*imported);
  }
  view_.staging(peer) = static_cast<unsigned char*>(memory->data());
  peers_.push_back(std::move(memory));
  return {};
}

}  // namespace onehop
