// Memory that promises no more than the protocol asks for: what real links may do, and x86 never would.
//
// * A store by send(), into a peer's inbox or the own outbox, is torn into its 8-byte halves (flag area) or
//   4-byte words (sentinel area). Each lands on its own, later, in random order, long after the sender's
//   kernel has ended if need be.
// * Stores of a kernel into its rank's own memory (clear, store_turn) may be held back until it ends.
// * A store lands while some thread looks at memory of the rank it goes to, or while a thread of that rank
//   sends or clears: so before, between and after the rank's own stores. For a reader a stale load is the
//   same as a store that has not landed.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/operation.hpp"
#include "test/protocol/random.hpp"

namespace onehop::test {

class ReorderingFabric {
  /// One indivisible store that has not landed.
  struct Store {
    unsigned char* to;
    uint64_t value;
    uint32_t bytes;
    uint32_t sender;
    uint32_t operation;
    uint32_t patience;  ///< times that it is passed over
  };

 public:
  class Memory : public HostMemory {
   public:
    Memory(ReorderingFabric& fabric, uint32_t rank, uint64_t seed)
        : fabric_(&fabric), rank_(rank), random_(seed) {}

    void send(Pack* to, const Pack& pack) {
      pump(rank_, 2);
      fabric_->launch_store(to, pack, rank_, random_);
    }
    void clear(Pack* to, const Pack& pack) {
      pump(rank_, 2);
      fabric_->shores_[rank_].hold(to, pack, rank_, fabric_->operation_[rank_], random_);
    }
    Pack receive(const Pack* from) {
      const uint32_t owner = fabric_->owner_of(from);
      pump(owner, 4);
      std::lock_guard lock(fabric_->shores_[owner].mutex);
      return HostMemory::receive(from);
    }
    Pack peek(const Pack* from) { return receive(from); }
    void store_turn(Turn* turn, const Turn& next) {
      Shore& shore = fabric_->shores_[rank_];
      std::lock_guard lock(shore.mutex);
      shore.turns.emplace_back(turn, next);
    }
    void pause() {
      pump(rank_, 4);
      HostMemory::pause();
    }

   private:
    void pump(uint32_t owner, uint32_t most) {
      Shore& shore = fabric_->shores_[owner];
      std::lock_guard lock(shore.mutex);
      fabric_->land_some(shore.flying, most, random_);
      if (random_.one_in(4)) fabric_->land_some(shore.held, 1, random_);
    }

    ReorderingFabric* fabric_;
    uint32_t rank_;
    Random random_;
  };

  explicit ReorderingFabric(uint64_t seed) : seed_(seed) {}

  void attach(const CommView& comm) {
    base_[comm.rank] = comm.own;
    layout_ = comm.layout;
  }
  Memory memory(uint32_t rank, uint32_t thread) { return {*this, rank, seed_ * 1000 + rank * 100 + thread}; }
  void begin(uint32_t rank, uint32_t operation) { operation_[rank] = operation; }

  std::string end(uint32_t rank, uint32_t operation) {
    Shore& shore = shores_[rank];
    std::lock_guard lock(shore.mutex);
    for (const Store& store : shore.held) land(store);
    shore.held.clear();
    for (const auto& [turn, next] : shore.turns) *turn = next;
    shore.turns.clear();
    const uint32_t before = ended_[rank];
    ended_[rank] = operation + 1;
    // Of this operation nothing is on its way into the inbox, of the one before nothing into the outbox.
    for (const Store& store : shore.flying)
      if (store.operation < (store.sender == rank ? before : operation + 1))
        return "byte " + std::to_string(store.to - base_[rank]) + " of operation " +
               std::to_string(store.operation) + " has not landed";
    for (uint32_t peer = 0; peer < layout_.ranks; ++peer)
      if (ended_[peer] < before)
        return "rank " + std::to_string(peer) + " may still read what operation " +
               std::to_string(before - 1) + " sent";
    return {};
  }

  /// Words that landed after the kernel that sent them had ended.
  uint64_t outlived() const { return outlived_; }

 private:
  /// What is on its way into one rank's staging memory.
  struct Shore {
    std::mutex mutex;
    std::vector<Store> flying;  ///< into the inbox, from peers; into the outbox, from the rank itself
    std::vector<Store> held;    ///< what the rank clears: landed at the kernel's end at the latest
    std::vector<std::pair<Turn*, Turn>> turns;

    void hold(Pack* to, const Pack& pack, uint32_t rank, uint32_t operation, Random& random) {
      std::lock_guard lock(mutex);
      for (uint32_t i = 0; i < 2; ++i) {
        Store store{reinterpret_cast<unsigned char*>(to) + 8 * i, 0, 8, rank, operation, 0};
        std::memcpy(&store.value, &pack.word[2 * i], 8);
        if (random.one_in(2))
          held.push_back(store);
        else
          land(store);
      }
    }
  };

  uint32_t owner_of(const void* address) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    uint32_t owner = 0;
    while (byte < base_[owner] || byte >= base_[owner] + layout_.bytes()) ++owner;
    return owner;
  }

  /// With the shore's mutex held.
  void land_some(std::vector<Store>& from, uint32_t most, Random& random) {
    for (uint32_t i = 0; i < most && !from.empty(); ++i) {
      Store& chosen = from[random.below(static_cast<uint32_t>(from.size()))];
      if (chosen.patience > 0) {
        --chosen.patience;
        continue;
      }
      if (ended_[chosen.sender] > chosen.operation) ++outlived_;
      land(chosen);
      chosen = from.back();
      from.pop_back();
    }
  }

  void launch_store(Pack* to, const Pack& pack, uint32_t sender, Random& random) {
    auto* bytes = reinterpret_cast<unsigned char*>(to);
    const uint32_t target = owner_of(to);
    const bool sentinel = bytes < base_[target] + layout_.sentinel_bytes();
    const uint32_t size = sentinel ? 4 : 8;
    Shore& shore = shores_[target];
    std::lock_guard lock(shore.mutex);
    for (uint32_t at = 0; at < sizeof(Pack); at += size) {
      Store store{bytes + at, 0, size, sender, operation_[sender], random.one_in(30) ? random.below(60) : 0};
      std::memcpy(&store.value, reinterpret_cast<const unsigned char*>(&pack) + at, size);
      shore.flying.push_back(store);
    }
  }

  static void land(const Store& store) {
    if (store.bytes == 4)
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(store.to))
          .store(static_cast<uint32_t>(store.value), std::memory_order_relaxed);
    else
      std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(store.to))
          .store(store.value, std::memory_order_relaxed);
  }

  uint64_t seed_;
  Layout layout_;
  unsigned char* base_[kMaxRanks] = {};
  uint32_t operation_[kMaxRanks] = {};
  std::atomic<uint32_t> ended_[kMaxRanks] = {};  ///< one more than the last operation with elements that has
  std::atomic<uint64_t> outlived_{0};
  Shore shores_[kMaxRanks];
};

}  // namespace onehop::test
