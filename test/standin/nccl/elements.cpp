#include "test/standin/nccl/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace onehop::standin {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <class T>
Wide<T> widen(const T& value) {
  return static_cast<Wide<T>>(value);
}

template <class T>
T narrow(Wide<T> value) {
  return T(value);
}

/// Integers wrap, as they do on a GPU.
template <class T, class Operator>
T wrapping(T a, T b, Operator combine) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(combine(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return combine(a, b);
  }
}

/// The greatest or the least; of a number and a NaN the number, and -0 is less than 0.
template <class T>
T extreme(T a, T b, bool greatest) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) == greatest ? b : a;
  }
  return greatest ? std::max(a, b) : std::min(a, b);
}

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return wrapping(a, b, [](auto x, auto y) { return x * y; });
    case ncclMax:
      return extreme(a, b, true);
    case ncclMin:
      return extreme(a, b, false);
    default:
      return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
}

/// Calls `function` with a value of the C++ type that stands for a data type.
template <class Function>
void with_type(ncclDataType_t type, Function function) {
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
    case ncclFloat32:
      return function(float{});
    case ncclFloat64:
      return function(double{});
    case ncclBfloat16:
      return function(__nv_bfloat16{});
#if CUDART_VERSION >= 11080
    case ncclFloat8e4m3:
      return function(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return function(__nv_fp8_e5m2{});
#endif
    default:
      return;
  }
}

template <class T>
T load(const void* array, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* array, size_t index, T value) {
  std::memcpy(static_cast<unsigned char*>(array) + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

size_t element_size(ncclDataType_t type) {
  size_t size = 0;
  with_type(type, [&](auto zero) { size = sizeof zero; });
  return size;
}

bool is_floating(ncclDataType_t type) {
  bool floating = false;
  with_type(type, [&](auto zero) { floating = !std::is_integral_v<decltype(zero)>; });
  return floating;
}

void scale(ncclDataType_t type, void* to, const void* from, const void* scalar, size_t count) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const Wide<T> factor = widen(load<T>(scalar, 0));
    for (size_t i = 0; i < count; ++i) {
      store(to, i, narrow<T>(combine(ncclProd, widen(load<T>(from, i)), factor)));
    }
  });
}

void make_inverse(ncclDataType_t type, int n, void* scalar) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    store(scalar, 0, narrow<T>(Wide<T>(1) / Wide<T>(n)));
  });
}

void reduce(ncclDataType_t type, ncclRedOp_t op, void* to, const unsigned char* const* from, int ranks,
            size_t count) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < count; ++i) {
      Wide<T> total = widen(load<T>(from[0], i));
      for (int rank = 1; rank < ranks; ++rank) total = combine(op, total, widen(load<T>(from[rank], i)));
      if constexpr (std::is_integral_v<T>) {
        if (op == ncclAvg) total = static_cast<T>(total / static_cast<T>(ranks));
      }
      store(to, i, narrow<T>(total));
    }
  });
}

}  // namespace onehop::standin
