// The protocol's memory on a GPU. Each operation is one instruction (arrive() is a fence and one).
#pragma once

#include <cstdint>

#include "kernels/protocol/memory.hpp"

namespace onehop {

class CudaMemory {
 public:
  /// Pairs with receive() on the GPU that owns the memory. relaxed.sys and not weak: a weak store may be
  /// split, merged or kept back, and the peer would wait or see half a word. Not release: the words prove
  /// their own arrival, so nothing before the store needs to be visible with it, and a release would wait for
  /// PCIe. Two 64-bit elements and not four of 32 bits: PTX promises wholeness for each element, and a flag
  /// word is 8 bytes.
  __device__ void send(Pack* to, const Pack& pack) const {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low(pack)), "l"(high(pack))
                 : "memory");
  }

  /// Own memory, read by this rank's later kernels and then written by a peer. Nobody looks at it before this
  /// kernel has ended, and the end of a kernel makes its stores visible: a weak store would do. relaxed.gpu
  /// keeps it out of the way of the compiler; system scope is not needed, since a peer never reads it.
  __device__ void clear(Pack* to, const Pack& pack) const {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low(pack)), "l"(high(pack))
                 : "memory");
  }

  /// Pairs with send(). relaxed.sys and not weak: a weak load may be served by this multiprocessor's L1 for
  /// ever, or be hoisted out of the loop. Not acquire: the data is in the word itself, nothing else is read
  /// on the strength of it.
  __device__ Pack receive(const Pack* from) const {
    uint64_t low, high;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
    return {{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
             static_cast<uint32_t>(high >> 32)}};
  }

  /// Written by the previous kernel, or by this one after every block has read it (turn.hpp). relaxed.gpu:
  /// never from an L1 that the previous kernel of another stream may have left stale.
  __device__ Turn load_turn(const Turn* turn) const {
    Turn t;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(t.epoch), "=r"(t.slot), "=r"(t.previous_packs), "=r"(t.sweep)
                 : "l"(turn));
    return t;
  }
  __device__ void store_turn(Turn* turn, const Turn& t) const {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(turn), "r"(t.epoch),
                 "r"(t.slot), "r"(t.previous_packs), "r"(t.sweep)
                 : "memory");
  }

  /// The reasons for acq_rel and for device scope stand at keep_turn().
  __device__ uint32_t arrive(uint32_t* counter) const {
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
  }
  __device__ void reset(uint32_t* counter) const {
    asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(counter) : "memory");
  }

  /// Pinned host memory: the host writes it while this kernel runs, so system scope; no data hangs on it.
  __device__ Stop stop(Control* control) const {
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(&control->stop) : "memory");
    return static_cast<Stop>(value);
  }
  /// The release orders the rank before the stop word for the host, which reads the stop word with acquire.
  __device__ void report(Control* control, Stop why, uint32_t rank) const {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(&control->missing_rank), "r"(rank) : "memory");
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&control->stop), "r"(static_cast<uint32_t>(why))
                 : "memory");
  }

  __device__ void pause() const {}  // the load's own latency is pause enough
  __device__ uint64_t now_ns() const {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

 private:
  __device__ static uint64_t low(const Pack& p) {
    return p.word[0] | (static_cast<uint64_t>(p.word[1]) << 32);
  }
  __device__ static uint64_t high(const Pack& p) {
    return p.word[2] | (static_cast<uint64_t>(p.word[3]) << 32);
  }
};

}  // namespace onehop
