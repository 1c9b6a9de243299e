// Memory that promises no more than the protocol asks for: what real links may do, and x86 never would.
//
// * A store by send() is torn into its 8-byte halves (flag area) or 4-byte words (sentinel area). Each lands
// on
//   its own, later, in random order, long after the sender's kernel has ended if need be.
// * Stores of a kernel into its rank's own memory (clear, store_turn) may be held back until that kernel
// ends.
// * A store lands while some thread of the receiving rank looks, sends or clears, so it may land before,
// between
//   and after the receiver's own stores. For a reader a stale load is the same as a store that has not
//   landed.
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
      pump(2);
      fabric_->launch_store(to, pack, rank_, random_);
    }
    void clear(Pack* to, const Pack& pack) {
      pump(2);
      fabric_->own(rank_).hold(to, pack, rank_, fabric_->operation_[rank_], random_);
    }
    Pack receive(const Pack* from) {
      pump(4);
      Shore& shore = fabric_->own(rank_);
      std::lock_guard lock(shore.mutex);
      return HostMemory::receive(from);
    }
    void store_turn(Turn* turn, const Turn& next) {
      Shore& shore = fabric_->own(rank_);
      std::lock_guard lock(shore.mutex);
      shore.turns.emplace_back(turn, next);
    }
    void pause() {
      pump(4);
      HostMemory::pause();
    }

   private:
    void pump(uint32_t most) {
      Shore& shore = fabric_->own(rank_);
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
    base_[comm.rank] = comm.inbox(comm.rank);
    layout_ = comm.layout;
  }
  Memory memory(uint32_t rank, uint32_t thread) { return {*this, rank, seed_ * 1000 + rank * 100 + thread}; }
  void begin(uint32_t rank, uint32_t operation) { operation_[rank] = operation; }

  std::string end(uint32_t rank, uint32_t operation) {
    Shore& shore = own(rank);
    std::lock_guard lock(shore.mutex);
    for (const Store& store : shore.held) land(store);
    shore.held.clear();
    for (const auto& [turn, next] : shore.turns) *turn = next;
    shore.turns.clear();
    ended_[rank] = operation + 1;
    for (const Store& store : shore.flying)
      if (store.operation <= operation)
        return "byte " + std::to_string(store.to - base_[rank]) + " of operation " +
               std::to_string(store.operation) + " has not landed";
    return {};
  }

  /// Words that landed after the kernel that sent them had ended.
  uint64_t outlived() const { return outlived_; }

 private:
  /// What is on its way into one rank's inbox.
  struct Shore {
    std::mutex mutex;
    std::vector<Store> flying;  ///< from peers
    std::vector<Store> held;    ///< from the rank itself, landed at the kernel's end at the latest
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

  Shore& own(uint32_t rank) { return shores_[rank]; }

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
    uint32_t target = 0;
    while (bytes < base_[target] || bytes >= base_[target] + layout_.bytes()) ++target;
    const bool sentinel = bytes < base_[target] + layout_.sentinel_bytes();
    const uint32_t size = sentinel ? 4 : 8;
    Shore& shore = own(target);
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
  InboxLayout layout_;
  unsigned char* base_[kMaxRanks] = {};
  uint32_t operation_[kMaxRanks] = {};
  std::atomic<uint32_t> ended_[kMaxRanks] = {};
  std::atomic<uint64_t> outlived_{0};
  Shore shores_[kMaxRanks];
};

}  // namespace onehop::test
