// Elements: how each type is computed with. fp16, bf16 and fp8 are widened to fp32 and rounded once; every
// other type is reduced in itself.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/payload.hpp"
#include "kernels/protocol/words.hpp"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace onehop {

template <class To, class From>
ONEHOP_HD To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

struct Float32 {
  static constexpr size_t kBytes = 4;
  using Accumulator = float;
  using Words = SentinelWords;
  ONEHOP_HD static float widen(uint32_t bits) { return bits_as<float>(bits); }
  ONEHOP_HD static uint32_t round(float value) { return bits_as<uint32_t>(value); }
};

struct Bfloat16 {
  static constexpr size_t kBytes = 2;
  using Accumulator = float;
  using Words = SentinelWords;
  ONEHOP_HD static float widen(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
  ONEHOP_HD static uint16_t round(float value) {
#ifdef __CUDA_ARCH__
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
    const uint32_t bits = bits_as<uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;  // the NaN that the GPU makes
    return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
#endif
  }
};

struct Float16 {
  static constexpr size_t kBytes = 2;
  using Accumulator = float;
  using Words = SentinelWords;
  ONEHOP_HD static float widen(uint16_t bits) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(bits));
#else
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1F, fraction = bits & 0x3FF;
    if (exponent == 31) return bits_as<float>(sign | 0x7F800000u | (fraction << 13));
    if (exponent != 0) return bits_as<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal or zero: exact
    return bits_as<float>(sign | bits_as<uint32_t>(magnitude));
#endif
  }
  ONEHOP_HD static uint16_t round(float value) {
#ifdef __CUDA_ARCH__
    return __half_as_ushort(__float2half_rn(value));
#else
    const uint32_t bits = bits_as<uint32_t>(value), sign = (bits >> 16) & 0x8000u,
                   magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return 0x7FFF;                                  // the NaN that the GPU makes
    if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to infinity
    if (magnitude <
        0x38800000u) {  // subnormal: adding 0.5 moves the wanted bits to the end and rounds them to even
      const float shifted = bits_as<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (bits_as<uint32_t>(shifted) - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
#endif
  }
};

struct Float64 {
  static constexpr size_t kBytes = 8;
  using Accumulator = double;
  using Words = FlagWords;
  ONEHOP_HD static double widen(uint64_t bits) { return bits_as<double>(bits); }
  ONEHOP_HD static uint64_t round(double value) { return bits_as<uint64_t>(value); }
};

/// Integers of either sign; they wrap, as NCCL's do.
template <class Integer>
struct IntegerElement {
  static constexpr size_t kBytes = sizeof(Integer);
  using Bits = typename BitsOf<kBytes>::Type;
  using Accumulator = Integer;
  using Words = FlagWords;
  ONEHOP_HD static Integer widen(Bits bits) { return static_cast<Integer>(bits); }
  ONEHOP_HD static Bits round(Integer value) { return static_cast<Bits>(value); }
};
using Int8 = IntegerElement<int8_t>;
using Uint8 = IntegerElement<uint8_t>;
using Int32 = IntegerElement<int32_t>;
using Uint32 = IntegerElement<uint32_t>;
using Int64 = IntegerElement<int64_t>;
using Uint64 = IntegerElement<uint64_t>;

}  // namespace onehop
