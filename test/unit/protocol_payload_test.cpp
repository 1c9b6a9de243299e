// Packs to and from buffers of every alignment and length; guard bytes on both sides. The size of an element
// is known when it is compiled (Payload), or when it runs (AnyPayload).
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/protocol/types.hpp"

namespace onehop::test {
namespace {

template <class Size>
class PayloadOf : public testing::Test {};
using Sizes = testing::Types<BitsOf<1>, BitsOf<2>, BitsOf<4>, BitsOf<8>>;
TYPED_TEST_SUITE(PayloadOf, Sizes);

constexpr size_t kGuard = 32, kMostCount = 40;

/// Calls `body(buffer, count)` for every place that a buffer of this element can have within 16 bytes.
template <size_t kBytes, class Body>
void for_every_buffer(const Body& body) {
  alignas(16) unsigned char storage[2 * kGuard + 16 + kMostCount * 8];
  for (size_t shift = 0; shift < 16; shift += kBytes)
    for (size_t count = 0; count <= kMostCount; ++count) {
      std::memset(storage, 0xEE, sizeof(storage));
      unsigned char* buffer = storage + kGuard + shift;
      body(buffer, count);
      for (unsigned char* at = storage; at < storage + sizeof(storage); ++at)
        if (at < buffer || at >= buffer + count * kBytes) {
          ASSERT_EQ(*at, 0xEE) << "byte " << at - buffer << " of " << count << " elements, shift " << shift;
        }
    }
}

template <size_t kBytes, class Byte>
struct Both {
  Payload<kBytes, Byte> typed;
  AnyPayload<Byte> any;

  Both(Byte* buffer, size_t count)
      : typed(buffer, static_cast<uint32_t>(count)), any(buffer, static_cast<uint32_t>(count), kBytes) {}
  template <class Body>
  void for_each(const Body& body) const {
    body(typed);
    body(any);
  }
};

unsigned char pattern(size_t index) {
  return static_cast<unsigned char>(17 + 31 * index);
}

TYPED_TEST(PayloadOf, LoadsPaddedWithZeros) {
  constexpr size_t kBytes = sizeof(typename TypeParam::Type);
  for_every_buffer<kBytes>([](unsigned char* buffer, size_t count) {
    for (size_t i = 0; i < count * kBytes; ++i) buffer[i] = pattern(i);
    Both<kBytes, const unsigned char>(buffer, count).for_each([&](const auto& payload) {
      const uint32_t packs = payload.packs();
      ASSERT_EQ(packs, (count * kBytes + 15) / 16);
      for (uint32_t p = 0; p < packs; ++p) {
        const Pack pack = payload.load(p);
        unsigned char bytes[16];
        std::memcpy(bytes, &pack, 16);
        for (size_t i = 0; i < 16; ++i) {
          const size_t at = size_t{p} * 16 + i;
          ASSERT_EQ(bytes[i], at < count * kBytes ? pattern(at) : 0);
        }
      }
    });
  });
}

TYPED_TEST(PayloadOf, StoresNoMoreThanItsElements) {
  constexpr size_t kBytes = sizeof(typename TypeParam::Type);
  for_every_buffer<kBytes>([](unsigned char* buffer, size_t count) {
    Both<kBytes, unsigned char>(buffer, count).for_each([&](const auto& payload) {
      std::memset(buffer, 0x77, count * kBytes);
      for (uint32_t p = 0; p < payload.packs(); ++p) {
        unsigned char bytes[16];
        for (size_t i = 0; i < 16; ++i) bytes[i] = pattern(size_t{p} * 16 + i);
        Pack pack;
        std::memcpy(&pack, bytes, 16);
        payload.store(p, pack);
      }
      for (size_t i = 0; i < count * kBytes; ++i) ASSERT_EQ(buffer[i], pattern(i));
    });
  });
}

TYPED_TEST(PayloadOf, LanesAreTheElementsInOrder) {
  using Bits = typename TypeParam::Type;
  constexpr size_t kBytes = sizeof(Bits);
  Pack pack;
  for (size_t i = 0; i < 16; ++i) reinterpret_cast<unsigned char*>(&pack)[i] = pattern(i);
  Bits elements[16 / kBytes];
  std::memcpy(elements, &pack, 16);
  const Lanes<kBytes> lanes = lanes_of<kBytes>(pack);
  for (size_t i = 0; i < 16 / kBytes; ++i) EXPECT_EQ(lanes.lane[i], elements[i]);
  const Pack back = pack_of<kBytes>(lanes);
  EXPECT_EQ(std::memcmp(&back, &pack, 16), 0);
}

}  // namespace
}  // namespace onehop::test
