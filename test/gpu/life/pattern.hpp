// The values of checked calls: small integers that differ from element to element, rank to rank and call to
// call, of which every order of reduction gives exactly the same bits; or random bits without infinities and
// NaNs, of which nothing is known but that all ranks must get the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/protocol/annotate.hpp"

namespace onehop::test {

/// Who sends what in one call. `type` and `op` are NCCL's numbers.
struct Pattern {
  uint32_t type = 7, op = 0;
  uint32_t ranks = 1, rank = 0;
  uint32_t seed = 0;
  bool random = false;
};

/// What a buffer must hold.
enum class Holds : uint32_t {
  kReduced,   ///< the reduction of all ranks' elements
  kGathered,  ///< block r is what rank r sent
  kOneRank,   ///< what rank `block` sent
};

ONEHOP_HD uint32_t size_of(uint32_t type) {
  constexpr uint32_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kSizes[type];
}

ONEHOP_HD bool is_float(uint32_t type) {
  return type >= 6;
}

ONEHOP_HD uint64_t mixed(uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ x >> 32;
}

/// The small integer that a rank sends as element i.
ONEHOP_HD uint32_t small_value(const Pattern& p, uint32_t rank, uint32_t round, size_t i) {
  const auto bits = static_cast<uint32_t>(
      mixed(i * 16 + rank + (static_cast<uint64_t>(p.seed + round * 7919u) << 36)) >> 20);
  if (p.op == 1) return 1 + bits % 2;  // of a product of 8 ranks too
  // The largest sum of 8 ranks must have its exact bits in every type.
  const uint32_t values = p.type == 11 ? 2 : p.type == 10 ? 3 : 13;
  return bits % values;
}

/// The bits of value / 2^halvings in a type.
ONEHOP_HD uint64_t encoded(uint32_t type, uint32_t value, uint32_t halvings) {
  constexpr uint32_t kMantissa[] = {0, 0, 0, 0, 0, 0, 10, 23, 52, 7, 3, 2},
                     kBias[] = {0, 0, 0, 0, 0, 0, 15, 127, 1023, 127, 7, 15};
  const uint32_t size = size_of(type);
  if (!is_float(type)) {
    const uint64_t result = value >> halvings;
    return size == 8 ? result : result & ((uint64_t{1} << 8 * size) - 1);
  }
  if (value == 0) return 0;
  uint32_t top = 0;
  while (value >> (top + 1) != 0) ++top;
  const uint64_t fraction = (static_cast<uint64_t>(value) << (52 - top)) & ((uint64_t{1} << 52) - 1);
  return (static_cast<uint64_t>(top + kBias[type] - halvings) << kMantissa[type]) |
         fraction >> (52 - kMantissa[type]);
}

/// The bits that a rank sends as element i.
ONEHOP_HD uint64_t sent_bits(const Pattern& p, uint32_t rank, uint32_t round, size_t i) {
  if (!p.random) return encoded(p.type, small_value(p, rank, round, i), 0);
  const uint32_t bits = 8 * size_of(p.type);
  uint64_t value = mixed(mixed(i * 16 + rank) + (static_cast<uint64_t>(p.seed) << 32) + round);
  if (is_float(p.type)) value &= ~(uint64_t{1} << (bits - 2));  // below 2: no infinity, no NaN
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

/// The bits of element i of what a buffer must hold; not for random values.
ONEHOP_HD uint64_t held_bits(const Pattern& p, Holds holds, size_t block, uint32_t round, size_t i) {
  if (holds == Holds::kGathered) return sent_bits(p, static_cast<uint32_t>(i / block), round, i % block);
  if (holds == Holds::kOneRank) return sent_bits(p, static_cast<uint32_t>(block), round, i);
  uint32_t result = small_value(p, 0, round, i);
  for (uint32_t r = 1; r < p.ranks; ++r) {
    const uint32_t value = small_value(p, r, round, i);
    if (p.op == 1)
      result *= value;
    else if (p.op == 2)
      result = result < value ? value : result;
    else if (p.op == 3)
      result = value < result ? value : result;
    else
      result += value;
  }
  if (p.op != 4) return encoded(p.type, result, 0);
  if (!is_float(p.type)) return encoded(p.type, result / p.ranks, 0);
  uint32_t halvings = 0;  // of floating-point numbers only where the ranks are a power of two
  while (1u << (halvings + 1) <= p.ranks) ++halvings;
  return encoded(p.type, result, halvings);
}

ONEHOP_HD uint64_t load_element(const void* data, uint32_t size, size_t i) {
  switch (size) {
    case 1:
      return static_cast<const uint8_t*>(data)[i];
    case 2:
      return static_cast<const uint16_t*>(data)[i];
    case 4:
      return static_cast<const uint32_t*>(data)[i];
    default:
      return static_cast<const uint64_t*>(data)[i];
  }
}

ONEHOP_HD void store_element(void* data, uint32_t size, size_t i, uint64_t bits) {
  switch (size) {
    case 1:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(bits);
      break;
    case 2:
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits);
      break;
    case 4:
      static_cast<uint32_t*>(data)[i] = static_cast<uint32_t>(bits);
      break;
    default:
      static_cast<uint64_t*>(data)[i] = bits;
  }
}

}  // namespace onehop::test
