// A kernel that is run again and again: a kernel of one thread is a function of what its looks at staging
// memory returned. So a rank that is in the middle of a kernel is nothing but the log of these values; to
// take it one step further the kernel is run from its beginning, answered from the log, and left where the
// log ends.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/protocol/memory.hpp"
#include "test/protocol/folded_fabric.hpp"

namespace onehop::test {

/// Staging memory of all ranks, in 8-byte halves: what lands and is seen at once. Addresses are handed to the
/// kernels, and never followed.
struct HalfMap {
  Layout layout;
  const unsigned char* base = nullptr;  ///< of rank 0; that of rank r lies r * layout.bytes() further
  const Fold* fold = nullptr;           ///< for memory whose parts share places

  uint32_t halves_of_rank() const { return static_cast<uint32_t>(layout.bytes() / 8); }
  uint32_t half_of(const Pack* pack) const {
    size_t at = static_cast<size_t>(reinterpret_cast<const unsigned char*>(pack) - base);
    const size_t rank = at / layout.bytes();
    at %= layout.bytes();
    if (fold) at = folded(*fold, layout, at);
    return static_cast<uint32_t>(rank * halves_of_rank() + at / 8);
  }
  uint32_t owner_of(uint32_t half) const { return half / halves_of_rank(); }
  WordKind kind_of(const Pack* pack) const {
    const size_t at =
        static_cast<size_t>(reinterpret_cast<const unsigned char*>(pack) - base) % layout.bytes();
    return at < layout.sentinel_bytes() ? WordKind::kSentinel : WordKind::kFlag;
  }
};

inline uint64_t half_value(const Pack& pack, uint32_t i) {
  return pack.word[2 * i] | uint64_t{pack.word[2 * i + 1]} << 32;
}

/// What a rank stores into staging memory.
struct Effect {
  uint32_t half;
  bool clear;  ///< lands before the kernel's end
  uint64_t value;
};

/// A half that a rank looks at.
struct Awaited {
  uint32_t half;
  bool changes;     ///< a half of change words: has arrived when both differ from `before`
  uint64_t before;  ///< what it held when this rank last took it

  bool operator==(const Awaited& other) const { return half == other.half; }
};

/// One run of a kernel: the Memory that it is given, and what came of it.
class ReplayMemory {
 public:
  struct Blocked {};  ///< thrown where the log ends

  /// `shadows`: as the kernel finds them.
  ReplayMemory(const HalfMap& map, const Turn& turn, const std::vector<Pack>& shadows,
               const std::vector<uint64_t>& log)
      : shadows(shadows), map_(map), turn_(turn), log_(log) {}

  void send(Pack* to, const Pack& pack) { store(to, pack, false); }
  void clear(Pack* to, const Pack& pack) { store(to, pack, true); }

  /// Beyond the log: nothing has arrived. The rank looks on, so as to say all that it waits for, until it
  /// pauses.
  Pack receive(const Pack* from) {
    uint64_t value[2];
    for (uint32_t i = 0; i < 2; ++i) {
      if (position_ < log_.size()) {
        value[i] = log_[position_++];
      } else {
        awaited.push_back(before_of(map_.half_of(from) + i));
        value[i] = nothing(map_.kind_of(from), awaited.back());
      }
    }
    received_ = from;
    was_answered_ = awaited.empty();
    return {{static_cast<uint32_t>(value[0]), static_cast<uint32_t>(value[0] >> 32),
             static_cast<uint32_t>(value[1]), static_cast<uint32_t>(value[1] >> 32)}};
  }
  Pack peek(const Pack* from) { return receive(from); }

  /// A first look at change words is receive(), then recall() of what they were. Where there is no answer,
  /// they pass for unchanged.
  Pack recall(const Pack* shadow) {
    const Pack& before = shadows[index_of(shadow)];
    for (uint32_t i = 0; received_ && i < 2; ++i) {
      Awaited half = before_of(map_.half_of(received_) + i);
      if (half.changes) continue;
      half.changes = true;
      half.before = half_value(before, i);
      known_.push_back(half);
      if (!was_answered_) awaited[awaited.size() - 2 + i] = half;
    }
    const bool unanswered = received_ && !was_answered_;
    received_ = nullptr;
    return unanswered ? Pack{{~0u, ~0u, ~0u, ~0u}} : before;
  }
  void keep(Pack* shadow, const Pack& pack) { shadows[index_of(shadow)] = pack; }

  void pause() {
    received_ = nullptr;
    if (!awaited.empty()) throw Blocked{};
    last_look_failed = position_ == log_.size();
  }

  Turn load_turn(const Turn*) const { return turn_; }
  void store_turn(Turn*, const Turn& next) { next_turn = next; }
  uint32_t arrive(uint32_t*) const { return 0; }
  void reset(uint32_t*) const {}
  Stop stop(Control*) const { return Stop::kNone; }
  void report(Control*, Stop, uint32_t) const {}
  uint64_t now_ns() const { return 0; }

  /// A half that no operation takes for its own.
  uint64_t nothing(WordKind kind, const Awaited& awaited) const {
    return nothing(kind, awaited, turn_.epoch);
  }
  static uint64_t nothing(WordKind kind, const Awaited& awaited, uint32_t epoch) {
    if (awaited.changes) return awaited.before;
    return kind == WordKind::kSentinel ? ~uint64_t{0} : uint64_t{~epoch} << 32;
  }

  std::vector<Effect> effects;
  std::vector<Awaited> awaited;   ///< halves of the look for which there is no answer
  bool last_look_failed = false;  ///< the log ends with a look that did not find everything
  Turn next_turn;
  std::vector<Pack> shadows;  ///< as the kernel leaves them

 private:
  /// Shadows have addresses of their own kind, which may be those of staging memory as well.
  size_t index_of(const Pack* shadow) const {
    return static_cast<size_t>(shadow - reinterpret_cast<const Pack*>(map_.base));
  }
  Awaited before_of(uint32_t half) const {
    for (const Awaited& known : known_)
      if (known.half == half) return known;
    return {half, false, 0};
  }

  void store(Pack* to, const Pack& pack, bool clear) {
    for (uint32_t i = 0; i < 2; ++i) effects.push_back({map_.half_of(to) + i, clear, half_value(pack, i)});
  }

  const HalfMap& map_;
  Turn turn_;
  const std::vector<uint64_t>& log_;
  size_t position_ = 0;
  std::vector<Awaited> known_;  ///< halves of change words that were looked at
  const Pack* received_ = nullptr;
  bool was_answered_ = false;  ///< the last receive()
};

}  // namespace onehop::test
