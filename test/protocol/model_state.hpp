// Where everything stands in the model: memory, what is on its way to it, and how far each rank is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "kernels/protocol/state.hpp"
#include "test/protocol/model_memory.hpp"

namespace onehop::test {

/// A store of 8 bytes that has not landed.
struct Write {
  uint32_t half;
  uint8_t writer;
  uint8_t kernel;  ///< of the writer
  bool clear;      ///< lands before that kernel's end
  uint64_t value;

  auto key() const { return std::tuple(half, clear, kernel, writer, value); }
};

struct RankState {
  uint32_t kernel = 0;
  bool returned = false;          ///< the kernel has done all but end
  std::vector<uint64_t> log;      ///< what its looks found
  std::vector<uint64_t> partial;  ///< what the look that is under way has found so far

  // These follow from the above.
  Turn turn;
  Turn next_turn;
  std::vector<Pack> shadows;
  std::vector<Pack> next_shadows;
  uint32_t emitted = 0;          ///< effects of this kernel that are in memory or on their way
  std::vector<Awaited> awaited;  ///< halves of the look that is under way or comes next
};

struct ModelState {
  std::vector<uint64_t> memory;
  std::vector<Write> pending;  ///< in the order of key(): equal states look equal
  std::vector<RankState> ranks;

  void add(const Write& write) {
    pending.insert(std::upper_bound(pending.begin(), pending.end(), write,
                                    [](const Write& a, const Write& b) { return a.key() < b.key(); }),
                   write);
  }
  void land(size_t i) {
    memory[pending[i].half] = pending[i].value;
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
  }
  /// First of the pending writes to this half, and their number.
  std::pair<size_t, size_t> pending_at(uint32_t half) const {
    const auto begin = std::lower_bound(pending.begin(), pending.end(), half,
                                        [](const Write& write, uint32_t h) { return write.half < h; });
    auto end = begin;
    while (end != pending.end() && end->half == half) ++end;
    return {static_cast<size_t>(begin - pending.begin()), static_cast<size_t>(end - begin)};
  }

  /// 128 bits: among millions of states two with the same are not to be expected.
  std::pair<uint64_t, uint64_t> hash() const {
    uint64_t a = 1, b = 2;
    const auto mix = [&](uint64_t value) {
      a = (a ^ value) * 0x9E3779B97F4A7C15u;
      a ^= a >> 29;
      b = (b + value) * 0xBF58476D1CE4E5B9u;
      b ^= b >> 32;
    };
    for (uint64_t value : memory) mix(value);
    mix(pending.size());
    for (const Write& write : pending) {
      mix(write.half | uint64_t{write.writer} << 32 | uint64_t{write.kernel} << 40 |
          uint64_t{write.clear} << 48);
      mix(write.value);
    }
    for (const RankState& rank : ranks) {
      mix(rank.kernel | uint64_t{rank.returned} << 32);
      mix(rank.log.size() | uint64_t{rank.partial.size()} << 32);
      for (uint64_t value : rank.log) mix(value);
      for (const Pack& pack : rank.shadows)
        for (uint32_t i = 0; i < 2; ++i) mix(half_value(pack, i));
      for (uint64_t value : rank.partial) mix(value);
    }
    return {a, b};
  }
};

}  // namespace onehop::test
