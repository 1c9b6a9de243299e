// Elements: how each type is added. fp16 and bf16 are summed in fp32 and rounded once; every other type in
// itself. The sum runs over ranks 0 .. N-1 in that order on every rank, so the result has the same bits on
// all of them.
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

/// Unsigned arithmetic wraps, and two's complement makes it the sum of signed integers as well.
struct Integer32 {
  static constexpr size_t kBytes = 4;
  using Accumulator = uint32_t;
  using Words = FlagWords;
  ONEHOP_HD static uint32_t widen(uint32_t bits) { return bits; }
  ONEHOP_HD static uint32_t round(uint32_t value) { return value; }
};

struct Integer64 {
  static constexpr size_t kBytes = 8;
  using Accumulator = uint64_t;
  using Words = FlagWords;
  ONEHOP_HD static uint64_t widen(uint64_t bits) { return bits; }
  ONEHOP_HD static uint64_t round(uint64_t value) { return value; }
};

/// The running sum of one pack.
template <class Element>
class PackSum {
 public:
  static constexpr uint32_t kLanes = Lanes<Element::kBytes>::kCount;

  /// The first rank's pack starts the sum: 0 + (-0) would lose the sign.
  ONEHOP_HD void start(const Pack& pack) {
    const auto lanes = lanes_of<Element::kBytes>(pack);
    for (uint32_t i = 0; i < kLanes; ++i) sum_[i] = Element::widen(lanes.lane[i]);
  }
  ONEHOP_HD void add(const Pack& pack) {
    const auto lanes = lanes_of<Element::kBytes>(pack);
    for (uint32_t i = 0; i < kLanes; ++i) sum_[i] += Element::widen(lanes.lane[i]);
  }
  ONEHOP_HD Pack result() const {
    Lanes<Element::kBytes> lanes;
    for (uint32_t i = 0; i < kLanes; ++i) lanes.lane[i] = Element::round(sum_[i]);
    return pack_of<Element::kBytes>(lanes);
  }

 private:
  typename Element::Accumulator sum_[kLanes] = {};
};

}  // namespace onehop
