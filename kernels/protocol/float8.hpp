// The two fp8 types. Rounding to them saturates: what is too large, infinities included, becomes the largest
// finite number, as in NCCL's own kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/protocol/element.hpp"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

namespace onehop {

/// 1 sign bit, kExponentBits, kMantissaBits; on the host by arithmetic that is exact in fp32.
template <int kExponentBits, int kMantissaBits>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;

  static float magnitude(uint32_t bits) {
    const int exponent = static_cast<int>(bits >> kMantissaBits);
    const int fraction = static_cast<int>(bits & ((1u << kMantissaBits) - 1));
    if (exponent == 0) return std::ldexp(static_cast<float>(fraction), 1 - kBias - kMantissaBits);
    return std::ldexp(static_cast<float>(fraction + (1 << kMantissaBits)), exponent - kBias - kMantissaBits);
  }

  /// The bits of the nearest number, ties to even, at most `largest`. `value` is not negative and no NaN.
  static uint32_t nearest(float value, uint32_t largest) {
    if (value >= magnitude(largest)) return largest;
    int exponent = 1 - kBias;
    if (value >= std::ldexp(1.0f, exponent)) exponent = std::ilogb(value);
    const float steps = std::nearbyint(std::ldexp(value, kMantissaBits - exponent));
    // A carry out of the fraction goes into the exponent by itself.
    const int implied = exponent + kBias - 1;  // 0 for subnormal numbers
    const auto bits = static_cast<uint32_t>((implied << kMantissaBits) + static_cast<int>(steps));
    return bits < largest ? bits : largest;
  }

  /// A number or an infinity with its sign; `magnitude` is of the low seven bits.
  static float with_sign(float magnitude, uint8_t bits) {
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
  }

  static uint8_t round(float value, uint32_t largest) {
    if (std::isnan(value)) return 0x7F;
    return static_cast<uint8_t>((std::signbit(value) ? 0x80 : 0) | nearest(std::fabs(value), largest));
  }
};

struct Float8e4m3 {
  static constexpr size_t kBytes = 1;
  using Accumulator = float;
  using Words = SentinelWordsOfE4m3;
  ONEHOP_HD static float widen(uint8_t bits) {
#ifdef __CUDA_ARCH__
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3)));
#else
    if ((bits & 0x7F) == 0x7F) return bits_as<float>(0x7FFFFFFFu);
    return SmallFloat<4, 3>::with_sign(SmallFloat<4, 3>::magnitude(bits & 0x7Fu), bits);
#endif
  }
  ONEHOP_HD static uint8_t round(float value) {
#ifdef __CUDA_ARCH__
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
#else
    return SmallFloat<4, 3>::round(value, 0x7E);
#endif
  }
};

struct Float8e5m2 {
  static constexpr size_t kBytes = 1;
  using Accumulator = float;
  using Words = SentinelWords;
  ONEHOP_HD static float widen(uint8_t bits) {
#ifdef __CUDA_ARCH__
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E5M2)));
#else
    if ((bits & 0x7F) > 0x7C) return bits_as<float>(0x7FFFFFFFu);
    if ((bits & 0x7F) == 0x7C) return SmallFloat<5, 2>::with_sign(bits_as<float>(0x7F800000u), bits);
    return SmallFloat<5, 2>::with_sign(SmallFloat<5, 2>::magnitude(bits & 0x7Fu), bits);
#endif
  }
  ONEHOP_HD static uint8_t round(float value) {
#ifdef __CUDA_ARCH__
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
#else
    return SmallFloat<5, 2>::round(value, 0x7B);
#endif
  }
};

}  // namespace onehop
