// The memory of one rank of a communicator: its staging memory, which its peers write (inbox) or read
// (outbox), its mappings of theirs, and what it alone uses.
#pragma once

#include <memory>
#include <vector>

#include "kernels/operation.hpp"
#include "plugin/device.hpp"
#include "plugin/staging/memory.hpp"
#include "plugin/staging/peer_socket.hpp"

namespace onehop {

/// What a peer must know to reach the staging memory of a rank.
struct StagingAddress {
  uint64_t process = 0;  ///< identity of the owner's process (plugin/globals.hpp)
  uint64_t pointer = 0;  ///< valid in the owner's process
  int32_t device = 0;    ///< device index in the owner's process
  MemoryHandle handle;   ///< for other processes
  SocketAddress socket;  ///< of the owner
};

/// Owns everything; frees it at the end. Peers must not write into this rank's inbox any more by then: that
/// is so once the last kernel of this rank has returned (kernels/protocol/README.md), but not after an abort.
class Staging {
 public:
  /// `device` is current in every call, also in the destructor's.
  Staging(Device& device, uint32_t rank, StagingKind, const Layout&, uint64_t budget_ns);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// Allocates this rank's memory and fills it, in the order of `stream`.
  Status allocate(Stream stream);
  /// Where the peers find it. `shared`: some peer is in another process.
  Result<StagingAddress> address(uint64_t process, int device_index, bool shared);
  /// A descriptor of host memory that peers may be sent; -1: device memory has none.
  int descriptor() const { return memory_->descriptor(); }
  /// Maps the memory of rank `peer`; `sent` is its descriptor, if that came.
  Status map(uint32_t peer, const StagingAddress&, uint64_t process, int device_index, Fd sent = {});
  /// All peers have mapped what they need.
  void close_name() { memory_->close_name(); }

  /// Packs of payload that a pair_view() carries.
  static constexpr uint32_t kPairPacks = 32;
  /// A communicator of this rank and `peer` alone, in memory of its own beside the real one's: for the probe,
  /// once per round. Its state is set in the order of `stream`.
  Result<CommView> pair_view(uint32_t peer, uint32_t round, Stream stream);

  /// Other communicators in the memory of the real one, while that is not in use: one of all ranks, for
  /// operations of a few packs, and one of this rank with each peer, for larger ones.
  struct Lent {
    CommView all;
    std::vector<CommView> with;  ///< by peer
    uint32_t packs = 0;          ///< of payload that a pair carries
  };
  /// Lent::packs, for so many rounds of pairs; 0: the memory is too small.
  static uint32_t lendable(const Layout&, uint32_t rounds);
  /// In the order of `stream`, with the lendable() packs of so many rounds, of which there are some.
  /// `round[peer]`: one that no other pair of either rank has.
  Result<Lent> lend(uint32_t rounds, const std::vector<uint32_t>& round, Stream stream);
  /// Empties the memory, in the order of `stream`, for the real communicator's first operation. No peer uses
  /// it before all ranks have done this.
  Status reset(Stream stream);

  StagingKind kind() const { return kind_; }
  const CommView& view() const { return view_; }
  CommView& view() { return view_; }
  /// All memory of this rank.
  uint64_t bytes() const { return bytes_for(view_.layout); }
  static uint64_t bytes_for(const Layout& layout) { return shared_bytes(layout) + private_bytes(layout); }

 private:
  // What peers reach: staging memory, and behind it that of the probe's pairs. What this rank alone uses: the
  // state and the shadows, and behind them those of the pairs.
  static Layout pair_layout(const Layout& layout);
  // Each a multiple of a state's alignment, since the next state follows.
  static uint64_t own_bytes(const Layout& layout) {
    return (sizeof(State) + layout.shadow_bytes() + alignof(State) - 1) / alignof(State) * alignof(State);
  }
  static uint64_t shared_bytes(const Layout& layout);
  static uint64_t private_bytes(const Layout& layout);
  /// Sets the state and the shadows of a view that begin at `at` of the private memory.
  Status prepare(CommView& view, uint64_t at, Stream stream);
  Status prepare(CommView& view, uint64_t state, uint64_t shadows, Stream stream);
  /// All ones: empty sentinel words.
  Status empty(unsigned char* memory, uint64_t bytes, Stream stream);
  static constexpr uint32_t kLentToAll = 128, kLentToPairs = 4096;  ///< packs
  static Layout lent_layout(const Layout& real, uint32_t ranks, uint32_t packs);
  CommView pair_of(uint32_t peer, const Layout&, uint64_t at);

  Device& device_;
  const StagingKind kind_;
  CommView view_;
  std::shared_ptr<StagingMemory> memory_;
  std::vector<std::shared_ptr<StagingMemory>> peers_;
  unsigned char* private_ = nullptr;  ///< behind the staging memory; with that in host memory, by itself
  void* pinned_ = nullptr;            ///< control and first state
};

}  // namespace onehop
