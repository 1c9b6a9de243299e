// Memory whose parts lie on top of each other, as a layout that saves memory would have it. Tests that use it
// must fail.
#pragma once

#include "test/protocol/fabric.hpp"

namespace onehop::test {

/// What is said to share memory.
enum class Fold { kOutboxWithInbox, kFlagsWithSentinels };

/// Where the byte `at` of staging memory really lies.
inline size_t folded(Fold fold, const Layout& layout, size_t at) {
  const size_t begin = at < layout.sentinel_bytes() ? 0 : layout.sentinel_bytes();
  if (fold == Fold::kFlagsWithSentinels) return at - begin;
  const size_t outbox = layout.outbox_region(WordKind::kSentinel, 0) * sizeof(Pack);
  return at - begin < outbox ? at : begin + (at - begin - outbox) % outbox;
}

class FoldedFabric {
 public:
  class Memory : public HostMemory {
   public:
    explicit Memory(const FoldedFabric& fabric) : fabric_(fabric) {}
    void send(Pack* to, const Pack& pack) const { HostMemory::send(fabric_.place_of(to), pack); }
    void clear(Pack* to, const Pack& pack) const { HostMemory::clear(fabric_.place_of(to), pack); }
    Pack receive(const Pack* from) const { return HostMemory::receive(fabric_.place_of(from)); }
    Pack peek(const Pack* from) const { return receive(from); }

   private:
    const FoldedFabric& fabric_;
  };

  explicit FoldedFabric(Fold fold) : fold_(fold) {}
  void attach(const CommView& comm) {
    base_[comm.rank] = comm.own;
    layout_ = comm.layout;
  }
  Memory memory(uint32_t, uint32_t) { return Memory(*this); }
  void begin(uint32_t, uint32_t) {}
  std::string end(uint32_t, uint32_t) { return {}; }

 private:
  Pack* place_of(const Pack* pack) const {
    const auto* byte = reinterpret_cast<const unsigned char*>(pack);
    uint32_t owner = 0;
    while (byte < base_[owner] || byte >= base_[owner] + layout_.bytes()) ++owner;
    const auto at = static_cast<size_t>(byte - base_[owner]);
    return reinterpret_cast<Pack*>(base_[owner] + folded(fold_, layout_, at));
  }

  Fold fold_;
  Layout layout_;
  unsigned char* base_[kMaxRanks] = {};
};

}  // namespace onehop::test
