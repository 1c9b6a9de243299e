// Conversions and sums of single elements, against a reference in double arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/protocol/element.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

struct HalfCase {
  using Element = Float16;
  static constexpr SmallFormat kFormat = kHalf;
};
struct BrainCase {
  using Element = Bfloat16;
  static constexpr SmallFormat kFormat = kBrain;
};

template <class Case>
class SmallFloat : public testing::Test {};
using Cases = testing::Types<HalfCase, BrainCase>;
TYPED_TEST_SUITE(SmallFloat, Cases);

float float_of(uint32_t bits) {
  return bits_as<float>(bits);
}

TYPED_TEST(SmallFloat, EveryPatternWidensExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = TypeParam::kFormat.widen(static_cast<uint16_t>(bits));
    const float widened = TypeParam::Element::widen(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << bits;
      ASSERT_EQ(std::signbit(widened), std::signbit(expected)) << bits;
    }
  }
}

TYPED_TEST(SmallFloat, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float widened = TypeParam::Element::widen(static_cast<uint16_t>(bits));
    ASSERT_EQ(TypeParam::Element::round(widened), std::isnan(widened) ? 0x7FFF : bits);
  }
}

// Halfway between each value and the next, and the two floats beside it; beyond the largest value too.
TYPED_TEST(SmallFloat, HalfwayCasesRoundToEven) {
  const SmallFormat format = TypeParam::kFormat;
  for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const double low = format.widen(static_cast<uint16_t>(bits));
    const double step = bits + 1 == format.infinity() ? low - format.widen(static_cast<uint16_t>(bits - 1))
                                                      : format.widen(static_cast<uint16_t>(bits + 1)) - low;
    const double middle = low + step / 2;
    const float exact = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(exact), middle) << "fp32 holds every halfway case";
    const uint32_t to_even = bits + (bits & 1);
    for (uint32_t sign : {0u, 0x8000u}) {
      const float direction = sign ? -1.0f : 1.0f;
      ASSERT_EQ(TypeParam::Element::round(direction * exact), sign | to_even) << bits;
      ASSERT_EQ(TypeParam::Element::round(direction * std::nextafter(exact, 0.0f)), sign | bits) << bits;
      ASSERT_EQ(TypeParam::Element::round(direction * std::nextafter(exact, INFINITY)), sign | (bits + 1))
          << bits;
    }
  }
}

TYPED_TEST(SmallFloat, RandomFloatsRoundAsTheReference) {
  Random random(1);
  for (int i = 0; i < 3'000'000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random.next());
    if (i % 2) bits = (bits & 0x80FFFFFF) | (random.between(96, 150) << 23 & 0x7F800000);  // fp16's range
    const float value = float_of(bits);
    ASSERT_EQ(TypeParam::Element::round(value), TypeParam::kFormat.round(value)) << std::hex << bits;
  }
}

TYPED_TEST(SmallFloat, EdgesOfTheRange) {
  using Element = typename TypeParam::Element;
  const uint16_t infinity = TypeParam::kFormat.infinity();
  EXPECT_EQ(Element::round(INFINITY), infinity);
  EXPECT_EQ(Element::round(-INFINITY), 0x8000 | infinity);
  EXPECT_EQ(Element::round(float_of(0x7F7FFFFF)), infinity);
  EXPECT_EQ(Element::round(-0.0f), 0x8000);
  EXPECT_EQ(Element::round(float_of(1)), 0);
  EXPECT_EQ(Element::round(float_of(0x80000001)), 0x8000);
  for (uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0xFFFFFFFFu})
    EXPECT_EQ(Element::round(float_of(nan)), 0x7FFF);
}

template <class Element>
Pack filled(typename BitsOf<Element::kBytes>::Type bits) {
  Lanes<Element::kBytes> lanes;
  for (auto& lane : lanes.lane) lane = bits;
  return pack_of<Element::kBytes>(lanes);
}

template <class Element>
auto sum_of(std::initializer_list<Pack> packs) {
  PackSum<Element> sum;
  bool first = true;
  for (const Pack& pack : packs) {
    first ? sum.start(pack) : sum.add(pack);
    first = false;
  }
  return lanes_of<Element::kBytes>(sum.result()).lane[0];
}

TEST(PackSum, KeepsNegativeZero) {
  EXPECT_EQ(sum_of<Float32>({filled<Float32>(0x80000000), filled<Float32>(0x80000000)}), 0x80000000u);
  EXPECT_EQ(sum_of<Float16>({filled<Float16>(0x8000), filled<Float16>(0x8000)}), 0x8000);
  EXPECT_EQ(sum_of<Bfloat16>({filled<Bfloat16>(0x8000), filled<Bfloat16>(0x8000)}), 0x8000);
  const uint64_t wide = uint64_t{1} << 63;
  EXPECT_EQ(sum_of<Float64>({filled<Float64>(wide), filled<Float64>(wide)}), wide);
  EXPECT_EQ(sum_of<Float32>({filled<Float32>(0x80000000), filled<Float32>(0)}), 0u);
}

// 2048 + 1 + 1 is 2050 when rounded once; in steps of fp16 it would stay 2048.
TEST(PackSum, RoundsOnce) {
  const uint16_t big = kHalf.round(2048), one = kHalf.round(1);
  EXPECT_EQ(sum_of<Float16>({filled<Float16>(big), filled<Float16>(one), filled<Float16>(one)}),
            kHalf.round(2050));
  const uint16_t large = kBrain.round(256), unit = kBrain.round(1);
  EXPECT_EQ(sum_of<Bfloat16>({filled<Bfloat16>(large), filled<Bfloat16>(unit), filled<Bfloat16>(unit)}),
            kBrain.round(258));
}

TEST(PackSum, AddsInRankOrder) {
  const auto bits = [](float value) { return filled<Float32>(bits_as<uint32_t>(value)); };
  EXPECT_EQ(sum_of<Float32>({bits(1e8f), bits(-1e8f), bits(1.0f)}), bits_as<uint32_t>(1.0f));
  EXPECT_EQ(sum_of<Float32>({bits(1.0f), bits(1e8f), bits(-1e8f)}), bits_as<uint32_t>(0.0f));
}

TEST(PackSum, IntegersWrap) {
  EXPECT_EQ(sum_of<Integer32>({filled<Integer32>(0xFFFFFFFF), filled<Integer32>(2)}), 1u);
  EXPECT_EQ(sum_of<Integer64>({filled<Integer64>(~uint64_t{0}), filled<Integer64>(2)}), 1u);
}

}  // namespace
}  // namespace onehop::test
