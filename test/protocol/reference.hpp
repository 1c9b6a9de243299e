// What an all-reduce must give, written without the protocol's own code: conversions by double arithmetic
// instead of bit tricks, sums rounded to fp32 from double (innocuous: 53 >= 2 * 24 + 2 bits).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/operation.hpp"

namespace onehop::test {

/// A floating-point format of `exponent_bits` and `fraction_bits`, at most 16 bits wide.
struct SmallFormat {
  int exponent_bits;
  int fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits); }

  double widen(uint16_t bits) const {
    const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double magnitude;
    if (exponent == (1 << exponent_bits) - 1)
      magnitude =
          fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
      magnitude = std::ldexp(fraction, 1 - bias() - fraction_bits);
    else
      magnitude = std::ldexp(fraction + (1 << fraction_bits), exponent - bias() - fraction_bits);
    return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
  }

  /// To nearest, ties to even. Any NaN becomes 0x7FFF, as on the GPU.
  uint16_t round(double value) const {
    if (std::isnan(value)) return 0x7FFF;
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | infinity();
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias());
    // In units of the last place; nearbyint() rounds ties to even.
    const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
    // Encodings of one sign are consecutive integers, so a carry into the exponent needs no care.
    const double code = std::ldexp(exponent + bias() - 1, fraction_bits) + units;
    return sign | (code >= infinity() ? infinity() : static_cast<uint16_t>(code));
  }
};

inline constexpr SmallFormat kHalf{5, 10};
inline constexpr SmallFormat kBrain{8, 7};

template <class T>
T lane_of(const std::vector<unsigned char>& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

inline bool is_floating(Element element) {
  return element != Element::kInteger32 && element != Element::kInteger64;
}

inline bool is_nan_lane(Element element, const std::vector<unsigned char>& bytes, size_t index) {
  switch (element) {
    case Element::kFloat32:
      return std::isnan(lane_of<float>(bytes, index));
    case Element::kFloat64:
      return std::isnan(lane_of<double>(bytes, index));
    case Element::kFloat16:
      return std::isnan(kHalf.widen(lane_of<uint16_t>(bytes, index)));
    case Element::kBfloat16:
      return std::isnan(kBrain.widen(lane_of<uint16_t>(bytes, index)));
    case Element::kInteger32:
    case Element::kInteger64:
      return false;
  }
  return false;
}

/// The sum of the inputs of all ranks, in rank order. The bits of a NaN are not specified.
inline std::vector<unsigned char> reference_sum(Element element, size_t count,
                                                const std::vector<std::vector<unsigned char>>& inputs) {
  std::vector<unsigned char> result(count * element_size(element));
  auto put = [&](size_t index, auto value) {
    std::memcpy(result.data() + index * sizeof(value), &value, sizeof(value));
  };
  auto small_sum = [&](const SmallFormat& format, size_t i) {
    float sum = static_cast<float>(format.widen(lane_of<uint16_t>(inputs[0], i)));
    for (size_t r = 1; r < inputs.size(); ++r)
      sum = static_cast<float>(static_cast<double>(sum) + format.widen(lane_of<uint16_t>(inputs[r], i)));
    return format.round(sum);
  };
  auto plain_sum = [&](auto zero, size_t i) {
    auto sum = lane_of<decltype(zero)>(inputs[0], i);
    for (size_t r = 1; r < inputs.size(); ++r) sum += lane_of<decltype(zero)>(inputs[r], i);
    return sum;
  };
  for (size_t i = 0; i < count; ++i) {
    switch (element) {
      case Element::kFloat16:
        put(i, small_sum(kHalf, i));
        break;
      case Element::kBfloat16:
        put(i, small_sum(kBrain, i));
        break;
      case Element::kFloat32: {
        float sum = lane_of<float>(inputs[0], i);
        for (size_t r = 1; r < inputs.size(); ++r)
          sum = static_cast<float>(static_cast<double>(sum) + lane_of<float>(inputs[r], i));
        put(i, sum);
        break;
      }
      case Element::kFloat64:
        put(i, plain_sum(double{}, i));
        break;
      case Element::kInteger32:
        put(i, plain_sum(uint32_t{}, i));
        break;
      case Element::kInteger64:
        put(i, plain_sum(uint64_t{}, i));
        break;
    }
  }
  return result;
}

}  // namespace onehop::test
