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

  /// Host memory. Loads of system scope from there are not pipelined: on an H200 each of a thread's takes 1.3
  /// us by itself, so a look at seven peers takes nine. Those of GPU scope are. They are weaker than the
  /// model asks for (the writer is outside of the scope), and this is what is leaned on instead: an aligned
  /// 8-byte load is whole at any scope; GPU scope passes by L1; and L2 does not keep host memory, so that a
  /// look never goes back to what was there before an earlier one (README.md, L5). If some GPU's L2 did keep
  /// it, the probe at set-up, which uses each place several times in the same way, would see changed words;
  /// and no wait would last for ever, as it asks with receive() now and then.
  __device__ Pack peek(const Pack* from) const {
    uint64_t low, high;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
    return {{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
             static_cast<uint32_t>(high >> 32)}};
  }

  /// Own device memory, touched by one thread of a kernel, and by another only in a later kernel: plain loads
  /// and stores, which the compiler may move to where they hide behind the link's latency.
  __device__ Pack recall(const Pack* shadow) const { return *shadow; }
  __device__ void keep(Pack* shadow, const Pack& pack) const { *shadow = pack; }

  /// Written by the previous kernel, or by this one after every block has read it (turn.hpp). relaxed.gpu:
  /// never from an L1 that the previous kernel of another stream may have left stale.
  __device__ Turn load_turn(const Turn* turn) const {
    Turn t;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(t.epoch), "=r"(t.slot), "=r"(t.left), "=r"(t.reserved)
                 : "l"(turn));
    return t;
  }
  __device__ void store_turn(Turn* turn, const Turn& t) const {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(turn), "r"(t.epoch),
                 "r"(t.slot), "r"(t.left), "r"(t.reserved)
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
