// What an all-reduce must give, computed on the host: the sum in rank order, in fp32 for the 16-bit types,
// rounded once.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/operation.hpp"
#include "kernels/protocol/dispatch.hpp"

namespace onehop::test {

/// The bits of one element of any type.
inline uint64_t element_at(const unsigned char* data, size_t size, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, data + i * size, size);
  return bits;
}

/// The reduction of element i over all inputs, in rank order.
inline uint64_t expected(Element element, Reduction reduction,
                         const std::vector<const unsigned char*>& inputs, size_t i) {
  return dispatch(element, reduction, [&]<class Type, class Operator>() -> uint64_t {
    typename Type::Accumulator value{};
    for (size_t r = 0; r < inputs.size(); ++r) {
      typename BitsOf<Type::kBytes>::Type bits;
      std::memcpy(&bits, inputs[r] + i * Type::kBytes, Type::kBytes);
      value = r == 0 ? Type::widen(bits) : Operator::combine(value, Type::widen(bits));
    }
    return Type::round(Operator::finish(value, static_cast<uint32_t>(inputs.size())));
  });
}

inline bool is_nan(Element element, uint64_t bits) {
  switch (element) {
    case Element::kFloat32:
      return (bits & 0x7FFFFFFF) > 0x7F800000;
    case Element::kFloat16:
      return (bits & 0x7FFF) > 0x7C00;
    case Element::kBfloat16:
      return (bits & 0x7FFF) > 0x7F80;
    case Element::kFloat64:
      return (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000;
    case Element::kFloat8e4m3:
      return (bits & 0x7F) == 0x7F;
    case Element::kFloat8e5m2:
      return (bits & 0x7F) > 0x7C;
    case Element::kInt8:
    case Element::kUint8:
    case Element::kInt32:
    case Element::kUint32:
    case Element::kInt64:
    case Element::kUint64:
      return false;
  }
  return false;
}

/// Random bit patterns: for floating-point types that is every exponent, infinities, NaNs, denormals and both
/// zeros.
inline std::vector<unsigned char> random_bytes(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<unsigned char> data(bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t bits = random();
    std::memcpy(&data[i], &bits, 8);
  }
  // Whole packs of the words that the protocol uses itself.
  for (size_t i = 0; i + 16 <= bytes; i += 16 * 37) std::memset(&data[i], i % 32 == 0 ? 0xFF : 0x00, 16);
  return data;
}

}  // namespace onehop::test
