#include "test/node/rank/elements.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <random>

namespace onehop::node {
namespace {

template <class T>
T load(const Bytes& bytes, size_t i) {
  T value;
  std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

/// `Wide`: what is added.
template <class T, class Wide>
bool check(const Bytes& got, const std::vector<Bytes>& inputs, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    // From the first rank's value, not from 0: 0 + (-0) is not -0.
    Wide total = static_cast<Wide>(load<T>(inputs[0], i));
    for (size_t r = 1; r < inputs.size(); ++r) total += static_cast<Wide>(load<T>(inputs[r], i));
    const T expected = static_cast<T>(total), actual = load<T>(got, i);
    if constexpr (!std::is_integral_v<Wide>)
      if (std::isnan(total) && std::isnan(static_cast<Wide>(actual))) continue;
    if (std::memcmp(&expected, &actual, sizeof(T)) != 0) return false;
  }
  return true;
}

}  // namespace

const std::vector<ElementType>& served_types() {
  static const std::vector<ElementType> types = {{ncclFloat32, "fp32", 4},  {ncclFloat16, "fp16", 2},
                                                 {ncclBfloat16, "bf16", 2}, {ncclFloat64, "fp64", 8},
                                                 {ncclInt32, "int32", 4},   {ncclUint32, "uint32", 4},
                                                 {ncclInt64, "int64", 8},   {ncclUint64, "uint64", 8}};
  return types;
}

bool holds_sum(const ElementType& type, const Bytes& got, const std::vector<Bytes>& inputs, size_t first,
               size_t count) {
  switch (type.type) {
    case ncclFloat32:
      return check<float, float>(got, inputs, first, count);
    case ncclFloat16:
      return check<__half, float>(got, inputs, first, count);
    case ncclBfloat16:
      return check<__nv_bfloat16, float>(got, inputs, first, count);
    case ncclFloat64:
      return check<double, double>(got, inputs, first, count);
    case ncclInt32:
    case ncclUint32:
      return check<uint32_t, uint32_t>(got, inputs, first, count);
    case ncclInt64:
    case ncclUint64:
      return check<uint64_t, uint64_t>(got, inputs, first, count);
    default:
      return false;
  }
}

Bytes random_inputs(const ElementType& type, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes data(count * type.bytes);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  for (size_t i = 0; i < count; i += 1 + random() % 29) {
    unsigned char* element = &data[i * type.bytes];
    switch (random() % 3) {
      case 0:
        std::memset(element, 0xFF, type.bytes);
        break;
      case 1:
        std::memset(element, 0, type.bytes);
        break;
      default:
        std::memset(element, 0, type.bytes);
        element[type.bytes - 1] = 0x80;
    }
  }
  return data;
}

void add_to_hash(uint64_t& hash, const unsigned char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001B3;
}

}  // namespace onehop::node
