// Operators, with NCCL's meaning. A reduction runs over ranks 0 .. N-1 in that order on every rank, so its
// result has the same bits on all of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/payload.hpp"

namespace onehop {

/// Integers wrap. Signed ones are computed as unsigned: the bits are the same, and overflow is defined.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct Sum {
  template <class T>
  ONEHOP_HD static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
  template <class T>
  ONEHOP_HD static T finish(T value, uint32_t /*ranks*/) {
    return value;
  }
};

struct Prod : Sum {
  template <class T>
  ONEHOP_HD static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

/// The sum divided by the number of ranks: integers after wrapping and towards zero, as NCCL does.
struct Avg : Sum {
  template <class T>
  ONEHOP_HD static T finish(T value, uint32_t ranks) {
    return static_cast<T>(value / static_cast<T>(ranks));
  }
};

/// Of a number and a NaN the number; of two zeros the positive one (fmax and fmin of the GPU).
struct Max : Sum {
  template <class T>
  ONEHOP_HD static T combine(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
#ifdef __CUDA_ARCH__
      return fmax(a, b);
#else
      if (std::isnan(a)) return b;
      if (std::isnan(b)) return a;
      if (a == b) return std::signbit(a) ? b : a;
      return a < b ? b : a;
#endif
    }
  }
};

struct Min : Sum {
  template <class T>
  ONEHOP_HD static T combine(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return b < a ? b : a;
    } else {
#ifdef __CUDA_ARCH__
      return fmin(a, b);
#else
      if (std::isnan(a)) return b;
      if (std::isnan(b)) return a;
      if (a == b) return std::signbit(a) ? a : b;
      return b < a ? b : a;
#endif
    }
  }
};

/// The reduction of one pack, rank by rank.
template <class Element, class Operator>
class PackReduction {
 public:
  static constexpr uint32_t kLanes = Lanes<Element::kBytes>::kCount;

  /// The first rank's pack starts it: 0 + (-0) would lose the sign.
  ONEHOP_HD void start(const Pack& pack) {
    const auto lanes = lanes_of<Element::kBytes>(pack);
    ONEHOP_UNROLL
    for (uint32_t i = 0; i < kLanes; ++i) value_[i] = Element::widen(lanes.lane[i]);
  }
  ONEHOP_HD void add(const Pack& pack) {
    const auto lanes = lanes_of<Element::kBytes>(pack);
    ONEHOP_UNROLL
    for (uint32_t i = 0; i < kLanes; ++i)
      value_[i] = Operator::combine(value_[i], Element::widen(lanes.lane[i]));
  }
  ONEHOP_HD Pack result(uint32_t ranks) const {
    Lanes<Element::kBytes> lanes;
    ONEHOP_UNROLL
    for (uint32_t i = 0; i < kLanes; ++i) lanes.lane[i] = Element::round(Operator::finish(value_[i], ranks));
    return pack_of<Element::kBytes>(lanes);
  }

  // The sum so far, unrounded, as packs: so it goes from island to island.
  static constexpr uint32_t kWidePacks = kLanes * sizeof(typename Element::Accumulator) / sizeof(Pack);
  ONEHOP_HD static constexpr uint32_t wide_packs() { return kWidePacks; }
  ONEHOP_HD Pack wide(uint32_t w) const {
    WideLanes lanes;
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kWidePacks; ++k)
      if (k == w)  // never an index that is known at run time only: the sum would leave the registers
        for (uint32_t i = 0; i < WideLanes::kCount; ++i)
          lanes.lane[i] = bits_of(value_[k * WideLanes::kCount + i]);
    return pack_of<sizeof(typename Element::Accumulator)>(lanes);
  }
  ONEHOP_HD void set_wide(uint32_t w, const Pack& pack) {
    const WideLanes lanes = lanes_of<sizeof(typename Element::Accumulator)>(pack);
    ONEHOP_UNROLL
    for (uint32_t k = 0; k < kWidePacks; ++k)
      if (k == w)
        for (uint32_t i = 0; i < WideLanes::kCount; ++i)
          value_[k * WideLanes::kCount + i] = value_of(lanes.lane[i]);
  }

 private:
  using WideLanes = Lanes<sizeof(typename Element::Accumulator)>;
  using WideBits = typename BitsOf<sizeof(typename Element::Accumulator)>::Type;
  ONEHOP_HD static WideBits bits_of(typename Element::Accumulator value) {
    WideBits bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  ONEHOP_HD static typename Element::Accumulator value_of(WideBits bits) {
    typename Element::Accumulator value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }

  typename Element::Accumulator value_[kLanes] = {};
};

}  // namespace onehop
