// What an all-reduce must give, written without the protocol's own code: conversions by double arithmetic
// instead of bit tricks, fp32 rounded from double (innocuous for + * and division by a small integer: 53 >= 2
// * 24
// + 2 bits), integers reduced in 128 bits and then wrapped.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/operation.hpp"

namespace onehop::test {

/// A floating-point format of `exponent_bits` and `fraction_bits`, at most 16 bits wide.
struct SmallFormat {
  int exponent_bits;
  int fraction_bits;
  bool has_infinity =
      true;                ///< else all ones, and nothing but that, is a NaN, and all other codes are numbers
  bool saturates = false;  ///< rounds to the largest number what is too large for it, infinity included

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint16_t sign() const { return static_cast<uint16_t>(1 << (exponent_bits + fraction_bits)); }
  /// The positive NaN of all ones.
  constexpr uint16_t nan() const { return static_cast<uint16_t>(sign() - 1); }
  /// The code after the largest number: infinity, or NaN where there is none.
  constexpr uint16_t infinity() const {
    return has_infinity ? static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits) : nan();
  }
  /// What too large a number becomes.
  constexpr uint16_t overflow() const {
    return saturates ? static_cast<uint16_t>(infinity() - 1) : infinity();
  }

  double widen(uint16_t bits) const {
    const int code = bits & nan();
    const int exponent = code >> fraction_bits;
    const int fraction = code & ((1 << fraction_bits) - 1);
    double magnitude;
    if (code > infinity() || (!has_infinity && code == nan()))
      magnitude = std::numeric_limits<double>::quiet_NaN();
    else if (code == infinity())
      magnitude = std::numeric_limits<double>::infinity();
    else if (exponent == 0)
      magnitude = std::ldexp(fraction, 1 - bias() - fraction_bits);
    else
      magnitude = std::ldexp(fraction + (1 << fraction_bits), exponent - bias() - fraction_bits);
    return std::copysign(magnitude, bits & sign() ? -1.0 : 1.0);
  }

  /// To nearest, ties to even. Any NaN becomes all ones but for the sign, as on the GPU.
  uint16_t round(double value) const {
    if (std::isnan(value)) return nan();
    const uint16_t negative = std::signbit(value) ? sign() : 0;
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return negative | overflow();
    if (magnitude == 0) return negative;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias());
    // In units of the last place; nearbyint() rounds ties to even.
    const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
    // Encodings of one sign are consecutive integers, so a carry into the exponent needs no care.
    const double code = std::ldexp(exponent + bias() - 1, fraction_bits) + units;
    return negative | (code >= infinity() ? overflow() : static_cast<uint16_t>(code));
  }
};

inline constexpr SmallFormat kHalf{5, 10};
inline constexpr SmallFormat kBrain{8, 7};
inline constexpr SmallFormat kE4m3{4, 3, false, true};
inline constexpr SmallFormat kE5m2{5, 2, true, true};

/// The format of the types that are narrower than fp32.
inline std::optional<SmallFormat> format_of(Element element) {
  switch (element) {
    case Element::kFloat16:
      return kHalf;
    case Element::kBfloat16:
      return kBrain;
    case Element::kFloat8e4m3:
      return kE4m3;
    case Element::kFloat8e5m2:
      return kE5m2;
    default:
      return std::nullopt;
  }
}

inline bool is_floating(Element element) {
  return format_of(element) || element == Element::kFloat32 || element == Element::kFloat64;
}

inline bool is_signed(Element element) {
  return element == Element::kInt8 || element == Element::kInt32 || element == Element::kInt64;
}

using Bytes = std::vector<unsigned char>;

template <class T>
T lane_of(const Bytes& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// The bits of an element, the rest zero.
inline uint64_t bits_at(Element element, const Bytes& bytes, size_t index) {
  const size_t size = element_size(element);
  uint64_t bits = 0;
  for (size_t i = 0; i < size; ++i) bits |= uint64_t{bytes[index * size + i]} << (8 * i);
  return bits;
}

inline double number_at(Element element, const Bytes& bytes, size_t index) {
  if (element == Element::kFloat64) return lane_of<double>(bytes, index);
  if (element == Element::kFloat32) return lane_of<float>(bytes, index);
  return format_of(element)->widen(static_cast<uint16_t>(bits_at(element, bytes, index)));
}

inline bool is_nan_lane(Element element, const Bytes& bytes, size_t index) {
  return is_floating(element) && std::isnan(number_at(element, bytes, index));
}

/// Of a number and a NaN the number; of two zeros the positive one is the larger.
inline double larger(double a, double b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == 0 && b == 0) return 1 / a > 0 ? a : b;
  return a > b ? a : b;
}

/// `round` is to the type in which the reduction is computed.
template <class Round>
double reduce_numbers(Reduction reduction, const std::vector<double>& values, const Round& round) {
  double result = values[0];
  for (size_t r = 1; r < values.size(); ++r) {
    if (reduction == Reduction::kProd)
      result = round(result * values[r]);
    else if (reduction == Reduction::kMax)
      result = larger(result, values[r]);
    else if (reduction == Reduction::kMin)
      result = -larger(-result, -values[r]);
    else
      result = round(result + values[r]);
  }
  return reduction == Reduction::kAvg ? round(result / static_cast<double>(values.size())) : result;
}

/// What is left of an integer in the type: its low bits, read with the type's sign.
inline __int128 wrapped(Element element, unsigned __int128 value) {
  const unsigned __int128 modulus = static_cast<unsigned __int128>(1) << (8 * element_size(element));
  const unsigned __int128 low = value % modulus;
  const bool negative = is_signed(element) && low >= modulus / 2;
  return static_cast<__int128>(low) - (negative ? static_cast<__int128>(modulus) : 0);
}

inline __int128 reduce_integers(Element element, Reduction reduction, const std::vector<__int128>& values) {
  using Wide = unsigned __int128;
  __int128 result = values[0];
  for (size_t r = 1; r < values.size(); ++r) {
    const __int128 next = values[r];
    if (reduction == Reduction::kProd)
      result = wrapped(element, static_cast<Wide>(result) * static_cast<Wide>(next));
    else if (reduction == Reduction::kMax)
      result = next > result ? next : result;
    else if (reduction == Reduction::kMin)
      result = next < result ? next : result;
    else
      result = wrapped(element, static_cast<Wide>(result) + static_cast<Wide>(next));
  }
  // The quotient of a 128-bit division is cut off towards zero.
  return reduction == Reduction::kAvg ? result / static_cast<__int128>(values.size()) : result;
}

/// The reduction of the inputs of all ranks, in rank order. The bits of a NaN are not specified.
inline Bytes reference(Element element, Reduction reduction, size_t count, const std::vector<Bytes>& inputs) {
  const size_t size = element_size(element);
  Bytes result(count * size);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (is_floating(element)) {
      std::vector<double> values;
      for (const Bytes& input : inputs) values.push_back(number_at(element, input, i));
      const bool wide = element == Element::kFloat64;
      const double value = reduce_numbers(reduction, values, [&](double exact) {
        return wide ? exact : static_cast<double>(static_cast<float>(exact));
      });
      const float narrow = static_cast<float>(value);
      if (const auto format = format_of(element))
        bits = format->round(value);
      else
        std::memcpy(&bits, wide ? static_cast<const void*>(&value) : &narrow, size);
    } else {
      std::vector<__int128> values;
      for (const Bytes& input : inputs) values.push_back(wrapped(element, bits_at(element, input, i)));
      bits = static_cast<uint64_t>(reduce_integers(element, reduction, values));
    }
    std::memcpy(result.data() + i * size, &bits, size);
  }
  return result;
}

}  // namespace onehop::test
