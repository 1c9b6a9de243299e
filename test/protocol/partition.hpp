// Partitions written as words.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/islands.hpp"

namespace onehop::test {

/// The letter of each rank is its island: "AABB" is {0, 1} {2, 3}.
constexpr Islands islands_of(std::string_view letters) {
  uint8_t island[kMaxRanks] = {};
  for (size_t r = 0; r < letters.size(); ++r) island[r] = static_cast<uint8_t>(letters[r] - 'A');
  return make_islands(island, static_cast<uint32_t>(letters.size()));
}

}  // namespace onehop::test
