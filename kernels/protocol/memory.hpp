// What the protocol asks of memory, and what it may rely on. There are three implementations: the GPU's
// (kernels/cuda/cuda_memory.cuh), ordinary memory shared by threads or processes
// (kernels/host/host_memory.hpp), and one that delays and reorders (test/protocol).
#pragma once

#include <concepts>
#include <cstdint>

#include "kernels/protocol/layout.hpp"
#include "kernels/protocol/state.hpp"

namespace onehop {

/// Between two ranks only send() and receive() matter, and they promise little: no order at all between two
/// packs, or between the two 8-byte halves of one. Each aligned 8-byte half is seen whole or not at all.
/// Everything stored by a kernel into its own rank's memory (clear, keep, store_turn) is done before the next
/// kernel of that rank begins.
template <class M>
concept Memory = requires(M memory, Pack* pack, const Pack* const_pack, Turn* turn, uint32_t* counter,
                          Control* control) {
  {memory.send(pack, *const_pack)};   ///< into a peer's inbox or the own outbox
  {memory.clear(pack, *const_pack)};  ///< into this rank's own inbox
  {
    memory.receive(const_pack)
    } -> std::same_as<Pack>;  ///< from the own inbox or a peer's outbox, never from a stale copy
  {
    memory.peek(const_pack)
    } -> std::same_as<Pack>;  ///< as receive(), of memory across a link; may lag, but never goes back
  { memory.recall(const_pack) } -> std::same_as<Pack>;  ///< from a shadow: memory that this rank alone uses
  {memory.keep(pack, *const_pack)};                     ///< into a shadow
  { memory.load_turn(turn) } -> std::same_as<Turn>;
  {memory.store_turn(turn, Turn{})};
  {
    memory.arrive(counter)
    } -> std::same_as<uint32_t>;  ///< adds 1, returns the value before; acquire and release
  {memory.reset(counter)};
  { memory.stop(control) } -> std::same_as<Stop>;        ///< reads the stop word
  {memory.report(control, Stop::kTimeout, uint32_t{})};  ///< writes it
  {memory.pause()};                                      ///< between two looks at a word that has not arrived
  { memory.now_ns() } -> std::same_as<uint64_t>;
};

/// The threads that run one operation of one rank: blocks of threads, as a kernel's. In each block one thread
/// keeps the turn; it may, but need not, be a worker too.
template <class G>
concept ThreadGroup = requires(const G group) {
  { group.block() } -> std::same_as<uint32_t>;
  { group.blocks() } -> std::same_as<uint32_t>;
  { group.is_keeper() } -> std::same_as<bool>;
  { group.is_worker() } -> std::same_as<bool>;
  { group.worker() } -> std::same_as<uint32_t>;   ///< unique among the workers of all blocks
  { group.workers() } -> std::same_as<uint32_t>;  ///< in all blocks
  {group.sync()};                                 ///< all threads of this block
};

}  // namespace onehop
