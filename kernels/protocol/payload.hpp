// Packs to and from the user's buffers, whatever their alignment and length. A buffer is aligned to its
// element and no more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/layout.hpp"

namespace onehop {

/// Unsigned integer that carries the bits of one element.
template <size_t kBytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = uint64_t;
};

/// The elements of one pack, as bits.
template <size_t kBytes>
struct Lanes {
  static constexpr uint32_t kCount = 16 / kBytes;
  typename BitsOf<kBytes>::Type lane[kCount];
};

template <size_t kBytes>
ONEHOP_HD Lanes<kBytes> lanes_of(const Pack& pack) {
  Lanes<kBytes> lanes;
  if constexpr (kBytes == 1) {
    for (int i = 0; i < 16; ++i) lanes.lane[i] = static_cast<uint8_t>(pack.word[i / 4] >> (i % 4 * 8));
  } else if constexpr (kBytes == 2) {
    for (int w = 0; w < 4; ++w) {
      lanes.lane[2 * w] = static_cast<uint16_t>(pack.word[w] & 0xFFFFu);
      lanes.lane[2 * w + 1] = static_cast<uint16_t>(pack.word[w] >> 16);
    }
  } else if constexpr (kBytes == 4) {
    for (int w = 0; w < 4; ++w) lanes.lane[w] = pack.word[w];
  } else {
    for (int w = 0; w < 2; ++w)
      lanes.lane[w] = pack.word[2 * w] | (static_cast<uint64_t>(pack.word[2 * w + 1]) << 32);
  }
  return lanes;
}

template <size_t kBytes>
ONEHOP_HD Pack pack_of(const Lanes<kBytes>& lanes) {
  Pack pack;
  if constexpr (kBytes == 1) {
    for (int w = 0; w < 4; ++w)
      pack.word[w] = lanes.lane[4 * w] | static_cast<uint32_t>(lanes.lane[4 * w + 1]) << 8 |
                     static_cast<uint32_t>(lanes.lane[4 * w + 2]) << 16 |
                     static_cast<uint32_t>(lanes.lane[4 * w + 3]) << 24;
  } else if constexpr (kBytes == 2) {
    for (int w = 0; w < 4; ++w)
      pack.word[w] = lanes.lane[2 * w] | (static_cast<uint32_t>(lanes.lane[2 * w + 1]) << 16);
  } else if constexpr (kBytes == 4) {
    for (int w = 0; w < 4; ++w) pack.word[w] = lanes.lane[w];
  } else {
    for (int w = 0; w < 2; ++w) {
      pack.word[2 * w] = static_cast<uint32_t>(lanes.lane[w]);
      pack.word[2 * w + 1] = static_cast<uint32_t>(lanes.lane[w] >> 32);
    }
  }
  return pack;
}

/// The elements first .. first + lanes - 1 of a buffer of `count`, one by one; those beyond the end read as
/// zero ...
template <size_t kBytes>
ONEHOP_HD_COLD Pack load_narrow(const void* base, uint32_t first, uint32_t count) {
  const auto* elements = static_cast<const typename BitsOf<kBytes>::Type*>(base);
  Lanes<kBytes> lanes{};
  for (uint32_t i = 0; i < Lanes<kBytes>::kCount; ++i)
    if (first + i < count) lanes.lane[i] = elements[first + i];
  return pack_of<kBytes>(lanes);
}

/// ... and are not written.
template <size_t kBytes>
ONEHOP_HD_COLD void store_narrow(void* base, uint32_t first, uint32_t count, const Pack pack) {
  auto* elements = static_cast<typename BitsOf<kBytes>::Type*>(base);
  const Lanes<kBytes> lanes = lanes_of<kBytes>(pack);
  for (uint32_t i = 0; i < Lanes<kBytes>::kCount; ++i)
    if (first + i < count) elements[first + i] = lanes.lane[i];
}

/// A buffer of `count` elements of kBytes bytes, seen as packs. The last pack may be partial: it reads as
/// padded with zeros, and only its elements are written.
template <size_t kBytes, class Byte>
class Payload {
 public:
  static constexpr uint32_t kLanes = Lanes<kBytes>::kCount;

  ONEHOP_HD Payload(Byte* base, uint32_t count)
      : base_(base), count_(count), wide_(reinterpret_cast<uintptr_t>(base) % sizeof(Pack) == 0) {}

  ONEHOP_HD static constexpr uint32_t packs_of(uint32_t count) { return (count + kLanes - 1) / kLanes; }
  ONEHOP_HD uint32_t packs() const { return packs_of(count_); }

  ONEHOP_HD Pack load(uint32_t index) const {
    const uint32_t first = index * kLanes;
    if (wide_ && first + kLanes <= count_) [[likely]]
      return reinterpret_cast<const Pack*>(base_)[index];
    return load_narrow<kBytes>(base_, first, count_);
  }

  ONEHOP_HD void store(uint32_t index, const Pack& pack) const {
    const uint32_t first = index * kLanes;
    if (wide_ && first + kLanes <= count_) [[likely]]
      reinterpret_cast<Pack*>(base_)[index] = pack;
    else
      store_narrow<kBytes>(base_, first, count_, pack);
  }

 private:
  Byte* base_;
  uint32_t count_;
  bool wide_;
};

}  // namespace onehop
