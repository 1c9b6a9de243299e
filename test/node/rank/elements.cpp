#include "test/node/rank/elements.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include "test/node/rank/rank.hpp"

namespace onehop::node {
namespace {

template <class T>
T load(const Bytes& bytes, size_t i) {
  T value;
  std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

/// What a type is computed in. Integers as unsigned ones of the widest type: the low bits are the same.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double,
                                std::conditional_t<std::is_integral_v<T>, uint64_t, float>>;

/// Of a number and a NaN the number; -0 is less than 0.
template <class T>
T extreme(T a, T b, bool greatest) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    if (a == 0 && b == 0) return std::signbit(a) == greatest ? b : a;
  }
  return (a > b) == greatest ? a : b;
}

template <class T>
Wide<T> reduced(ncclRedOp_t op, const std::vector<Bytes>& inputs, size_t i) {
  // From the first rank's value, not from 0: 0 + (-0) is not -0.
  auto total = static_cast<Wide<T>>(load<T>(inputs[0], i));
  for (size_t r = 1; r < inputs.size(); ++r) {
    const auto value = static_cast<Wide<T>>(load<T>(inputs[r], i));
    if (op == ncclProd)
      total *= value;
    else if (op == ncclSum || op == ncclAvg)
      total += value;
    else if constexpr (std::is_integral_v<T>)
      total = static_cast<uint64_t>(extreme(static_cast<T>(total), static_cast<T>(value), op == ncclMax));
    else
      total = extreme(total, value, op == ncclMax);
  }
  if (op != ncclAvg) return total;
  if constexpr (std::is_integral_v<T>)
    // Wrapped first, and as the type's own number: -7 / 2 is -3.
    return static_cast<uint64_t>(static_cast<T>(total) / static_cast<T>(inputs.size()));
  else
    return total / static_cast<Wide<T>>(inputs.size());
}

template <class T>
bool check(ncclRedOp_t op, const Bytes& got, const std::vector<Bytes>& inputs, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    const Wide<T> total = reduced<T>(op, inputs, i);
    const T expected = static_cast<T>(total), actual = load<T>(got, i);
    if constexpr (!std::is_integral_v<T>)
      if (std::isnan(total) && std::isnan(static_cast<Wide<T>>(actual))) continue;
    if (std::memcmp(&expected, &actual, sizeof(T)) != 0) return false;
  }
  return true;
}

/// Calls `function` with a value of the C++ type.
template <class Function>
auto with_type(ncclDataType_t type, Function function) {
  switch (type) {
    case ncclInt8:
      return function(int8_t{});
    case ncclUint8:
      return function(uint8_t{});
    case ncclInt32:
      return function(int32_t{});
    case ncclUint32:
      return function(uint32_t{});
    case ncclInt64:
      return function(int64_t{});
    case ncclUint64:
      return function(uint64_t{});
    case ncclFloat16:
      return function(__half{});
    case ncclBfloat16:
      return function(__nv_bfloat16{});
    case ncclFloat64:
      return function(double{});
    case ncclFloat8e4m3:
      return function(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return function(__nv_fp8_e5m2{});
    default:
      return function(float{});
  }
}

}  // namespace

const std::vector<ElementType>& all_types() {
  static const std::vector<ElementType> types = {{ncclFloat32, "fp32", 4, true},
                                                 {ncclFloat16, "fp16", 2, true},
                                                 {ncclBfloat16, "bf16", 2, true},
                                                 {ncclFloat64, "fp64", 8, true},
                                                 {ncclInt32, "int32", 4, false},
                                                 {ncclUint32, "uint32", 4, false},
                                                 {ncclInt64, "int64", 8, false},
                                                 {ncclUint64, "uint64", 8, false},
                                                 {ncclInt8, "int8", 1, false},
                                                 {ncclUint8, "uint8", 1, false},
                                                 {ncclFloat8e4m3, "fp8 (e4m3)", 1, true},
                                                 {ncclFloat8e5m2, "fp8 (e5m2)", 1, true}};
  return types;
}

const ElementType& type_named(const std::string& name) {
  for (const ElementType& type : all_types())
    if (name == type.name) return type;
  fail("no type " + name);
}

void put_element(const ElementType& type, uint32_t value, unsigned char* to) {
  with_type(type.type, [&](auto zero) {
    const auto element = static_cast<decltype(zero)>(static_cast<float>(value));
    std::memcpy(to, &element, sizeof(element));
  });
}

const std::vector<Operator>& all_operators() {
  static const std::vector<Operator> operators = {{ncclSum, "sum"},
                                                  {ncclProd, "product"},
                                                  {ncclMax, "maximum"},
                                                  {ncclMin, "minimum"},
                                                  {ncclAvg, "average"}};
  return operators;
}

bool holds_reduction(const ElementType& type, ncclRedOp_t op, const Bytes& got,
                     const std::vector<Bytes>& inputs, size_t first, size_t count) {
  return with_type(type.type,
                   [&](auto zero) { return check<decltype(zero)>(op, got, inputs, first, count); });
}

Bytes random_inputs(const ElementType& type, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes data(count * type.bytes);
  for (size_t i = 0; i < data.size(); i += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(&data[i], &bits, std::min(sizeof bits, data.size() - i));
  }
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
  // The same elements on every rank: one infinity hides all other factors.
  if (!type.floating) return data;
  with_type(type.type, [&](auto zero) {
    std::uniform_real_distribution<float> around_one(0.5f, 1.75f);
    for (size_t i = 0; i < count; i += 3) {
      const auto value =
          static_cast<decltype(zero)>(random() % 2 == 0 ? around_one(random) : -around_one(random));
      std::memcpy(&data[i * sizeof value], &value, sizeof value);
    }
  });
  return data;
}

void add_to_hash(uint64_t& hash, const unsigned char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001B3;
}

}  // namespace onehop::node
