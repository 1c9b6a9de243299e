// Fabrics: the memory between ranks, as the tests' ranks see it. A fabric hands out one Memory per thread,
// and is told where each rank's kernels begin and end.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/host/host_memory.hpp"
#include "kernels/operation.hpp"

namespace onehop::test {

template <class F>
concept Fabric = requires(F fabric, const CommView& comm, uint32_t number) {
  requires Memory<typename F::Memory>;
  { fabric.memory(number, number) } -> std::same_as<typename F::Memory>;  ///< rank, thread
  {fabric.attach(comm)};           ///< each rank's view, before anything runs
  {fabric.begin(number, number)};  ///< rank's kernel for an operation begins
  /// It has ended, for an operation with elements: the rank's stores into its own memory are done. Says what
  /// has not happened by now although it should have.
  { fabric.end(number, number) } -> std::same_as<std::string>;
};

/// Ordinary memory. What ThreadSanitizer checks.
class PlainFabric {
 public:
  using Memory = HostMemory;

  void attach(const CommView&) {}
  Memory memory(uint32_t, uint32_t) { return {}; }
  void begin(uint32_t, uint32_t) {}
  std::string end(uint32_t, uint32_t) { return {}; }
};

/// Where a hook is called: before a touch of memory, or after a store (kSent, kCleared).
enum class Touch { kLoadTurn, kSend, kSent, kClear, kCleared, kReceive };

/// Ordinary memory with a hook at every touch, with which a test forces one schedule. A hook may wait for
/// another rank, but not for ever.
class HookedFabric {
 public:
  using Hook = std::function<void(Touch, uint32_t rank, uint32_t operation)>;

  class Memory : public HostMemory {
   public:
    Memory(HookedFabric& fabric, uint32_t rank) : fabric_(fabric), rank_(rank) {}
    void send(Pack* to, const Pack& pack) {
      touch(Touch::kSend);
      HostMemory::send(to, pack);
      touch(Touch::kSent);
    }
    void clear(Pack* to, const Pack& pack) {
      touch(Touch::kClear);
      HostMemory::clear(to, pack);
      touch(Touch::kCleared);
    }
    Pack receive(const Pack* from) {
      touch(Touch::kReceive);
      return HostMemory::receive(from);
    }
    Pack peek(const Pack* from) { return receive(from); }
    Turn load_turn(const Turn* turn) {
      touch(Touch::kLoadTurn);
      return HostMemory::load_turn(turn);
    }

   private:
    void touch(Touch what) { fabric_.hook_(what, rank_, fabric_.operation_[rank_]); }

    HookedFabric& fabric_;
    uint32_t rank_;
  };

  explicit HookedFabric(Hook hook) : hook_(std::move(hook)) {}
  void attach(const CommView&) {}
  Memory memory(uint32_t rank, uint32_t) { return {*this, rank}; }
  void begin(uint32_t rank, uint32_t operation) { operation_[rank] = operation; }
  std::string end(uint32_t, uint32_t) { return {}; }

 private:
  Hook hook_;
  uint32_t operation_[kMaxRanks] = {};
};

}  // namespace onehop::test
