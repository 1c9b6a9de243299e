// Faults of links, for tests: what a CPU form of the kernels does with words between ranks in place of moving
// them.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/operation.hpp"

namespace onehop {

enum class Fault {
  kDrop,    ///< words do not arrive
  kZero,    ///< zeros arrive
  kFlip,    ///< a bit of the data arrives changed
  kMirror,  ///< words land in the writer's own memory, or are read from the reader's own
  kHalf,    ///< the first 8 bytes of 16 arrive
  kDelay,   ///< words arrive 6 s late
};
inline constexpr std::chrono::seconds kFaultDelay{6};

/// A peer's memory that is reached over a broken link.
struct BrokenLink {
  const unsigned char* memory = nullptr;
  size_t bytes = 0;
  Fault fault = Fault::kDrop;
  bool on_read = false;  ///< else on write
};

struct Tampering {
  std::vector<BrokenLink> links;
  std::function<void(Pack*, Pack)> store_late;  ///< stores after kFaultDelay, and returns at once
  /// What lay at a place that is read when it was first read, until kFaultDelay after that.
  std::function<Pack(const Pack*, Pack now)> load_late;

  const BrokenLink* find(const void* address, bool on_read) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    for (const BrokenLink& link : links)
      if (link.on_read == on_read && byte >= link.memory && byte < link.memory + link.bytes) return &link;
    return nullptr;
  }
};

class TamperedMemory : public HostMemory {
 public:
  TamperedMemory(const CommView& comm, const Tampering& tampering) : comm_(comm), tampering_(tampering) {}

  void send(Pack* to, const Pack& pack) const {
    const BrokenLink* link = tampering_.find(to, false);
    if (link == nullptr) return HostMemory::send(to, pack);
    switch (link->fault) {
      case Fault::kDrop:
        return;
      case Fault::kZero:
        return HostMemory::send(to, Pack{});
      case Fault::kFlip:
        return HostMemory::send(to, flipped(pack));
      case Fault::kMirror:
        return HostMemory::send(const_cast<Pack*>(mirrored(to)), pack);
      case Fault::kHalf: {
        const Pack before = HostMemory::receive(to);
        return HostMemory::send(to, {{pack.word[0], pack.word[1], before.word[2], before.word[3]}});
      }
      case Fault::kDelay:
        return tampering_.store_late(to, pack);
    }
  }

  Pack receive(const Pack* from) const {
    const BrokenLink* link = tampering_.find(from, true);
    if (link == nullptr) return HostMemory::receive(from);
    // Fresh memory; no flag either.
    constexpr uint32_t kNothing = 0xFFFFFFFF;
    const Pack now = HostMemory::receive(from);
    switch (link->fault) {
      case Fault::kDrop:
        return {{kNothing, kNothing, kNothing, kNothing}};
      case Fault::kZero:
        return Pack{};
      case Fault::kFlip:
        return flipped(now);
      case Fault::kMirror:
        return HostMemory::receive(mirrored(from));
      case Fault::kHalf:
        return {{now.word[0], now.word[1], kNothing, kNothing}};
      case Fault::kDelay:
        return tampering_.load_late(from, now);
    }
    return now;
  }
  Pack peek(const Pack* from) const { return receive(from); }

 private:
  /// Not a bit of a flag, nor one that rounding could hide.
  static Pack flipped(Pack pack) {
    pack.word[0] ^= 1u << 20;
    return pack;
  }
  /// The same place of this rank's own memory.
  const Pack* mirrored(const Pack* place) const {
    const auto* byte = reinterpret_cast<const unsigned char*>(place);
    for (uint32_t p = 0; p + 1 < comm_.ranks; ++p) {
      const unsigned char* peer = comm_.peer(p);
      if (peer != nullptr && byte >= peer && byte < peer + comm_.layout.bytes())
        return reinterpret_cast<const Pack*>(comm_.own + (byte - peer));
    }
    return place;
  }

  const CommView& comm_;
  const Tampering& tampering_;
};

}  // namespace onehop
