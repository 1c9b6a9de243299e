// Conversions of single elements, against a reference in double arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/protocol/element.hpp"
#include "kernels/protocol/float8.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

template <class ElementType, const SmallFormat& kFormatOfElement>
struct Case {
  using Element = ElementType;
  using Bits = typename BitsOf<Element::kBytes>::Type;
  static constexpr SmallFormat kFormat = kFormatOfElement;
  static constexpr uint32_t kPatterns = 2u * kFormat.sign();

  static float widen(uint32_t bits) { return Element::widen(static_cast<Bits>(bits)); }
  static double expected(uint32_t bits) { return kFormat.widen(static_cast<uint16_t>(bits)); }
};

template <class Case>
class NarrowFloat : public testing::Test {};
using Cases = testing::Types<Case<Float16, kHalf>, Case<Bfloat16, kBrain>, Case<Float8e4m3, kE4m3>,
                             Case<Float8e5m2, kE5m2>>;
TYPED_TEST_SUITE(NarrowFloat, Cases);

float float_of(uint32_t bits) {
  return bits_as<float>(bits);
}

/// Any NaN of an fp8 type will do; the others are as on the GPU.
template <class Case>
bool rounds_to(float value, uint32_t expected) {
  const uint32_t rounded = Case::Element::round(value);
  if (Case::Element::kBytes == 1 && std::isnan(value)) return std::isnan(Case::expected(rounded));
  return rounded == expected;
}

// Written out, so that the reference itself is held to something.
TEST(Float8, HasTheseValues) {
  EXPECT_EQ(Float8e4m3::widen(0x7E), 448.0f);
  EXPECT_EQ(Float8e4m3::widen(0x78), 256.0f);
  EXPECT_EQ(Float8e4m3::widen(0xB8), -1.0f);
  EXPECT_EQ(Float8e4m3::widen(0x01), 0x1p-9f);
  EXPECT_EQ(Float8e4m3::widen(0x08), 0x1p-6f);
  EXPECT_TRUE(std::isnan(Float8e4m3::widen(0x7F)) && std::isnan(Float8e4m3::widen(0xFF)));
  EXPECT_EQ(Float8e5m2::widen(0x7B), 57344.0f);
  EXPECT_EQ(Float8e5m2::widen(0xFC), -INFINITY);
  EXPECT_EQ(Float8e5m2::widen(0xBC), -1.0f);
  EXPECT_EQ(Float8e5m2::widen(0x01), 0x1p-16f);
  for (uint8_t nan : {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}) EXPECT_TRUE(std::isnan(Float8e5m2::widen(nan)));
}

TEST(Float8, RoundingSaturates) {
  for (float value : {449.0f, 463.9f, 464.0f, 465.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(Float8e4m3::round(value), 0x7E) << value;
    EXPECT_EQ(Float8e4m3::round(-value), 0xFE) << value;
  }
  for (float value : {57345.0f, 61440.0f, 65536.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(Float8e5m2::round(value), 0x7B) << value;
    EXPECT_EQ(Float8e5m2::round(-value), 0xFB) << value;
  }
}

TYPED_TEST(NarrowFloat, EveryPatternWidensExactly) {
  for (uint32_t bits = 0; bits < TypeParam::kPatterns; ++bits) {
    const double expected = TypeParam::expected(bits);
    const float widened = TypeParam::widen(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << bits;
      ASSERT_EQ(std::signbit(widened), std::signbit(expected)) << bits;
    }
  }
}

// But infinity becomes the largest number where rounding saturates.
TYPED_TEST(NarrowFloat, EveryPatternSurvivesTheRoundTrip) {
  constexpr SmallFormat format = TypeParam::kFormat;
  for (uint32_t bits = 0; bits < TypeParam::kPatterns; ++bits) {
    const float widened = TypeParam::widen(bits);
    const uint32_t expected = std::isnan(widened)   ? format.nan()
                              : std::isinf(widened) ? (bits & format.sign()) | format.overflow()
                                                    : bits;
    ASSERT_TRUE(rounds_to<TypeParam>(widened, expected)) << bits;
  }
}

// Halfway between each value and the next, and the two floats beside it; beyond the largest value too.
TYPED_TEST(NarrowFloat, HalfwayCasesRoundToEven) {
  constexpr SmallFormat format = TypeParam::kFormat;
  for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const double low = TypeParam::expected(bits);
    const double step = bits + 1 == format.infinity() ? low - TypeParam::expected(bits - 1)
                                                      : TypeParam::expected(bits + 1) - low;
    const double middle = low + step / 2;
    const float exact = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(exact), middle) << "fp32 holds every halfway case";
    const uint32_t most = format.overflow(), to_even = std::min(bits + (bits & 1), most),
                   up = std::min(bits + 1, most);
    for (uint32_t sign : {0u, uint32_t{format.sign()}}) {
      const float direction = sign ? -1.0f : 1.0f;
      ASSERT_EQ(TypeParam::Element::round(direction * exact), sign | to_even) << bits;
      ASSERT_EQ(TypeParam::Element::round(direction * std::nextafter(exact, 0.0f)), sign | bits) << bits;
      ASSERT_EQ(TypeParam::Element::round(direction * std::nextafter(exact, INFINITY)), sign | up) << bits;
    }
  }
}

TYPED_TEST(NarrowFloat, RandomFloatsRoundAsTheReference) {
  Random random(1);
  for (int i = 0; i < 3'000'000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random.next());
    if (i % 2) bits = (bits & 0x80FFFFFF) | (random.between(96, 150) << 23 & 0x7F800000);  // fp16's range
    const float value = float_of(bits);
    ASSERT_TRUE(rounds_to<TypeParam>(value, TypeParam::kFormat.round(value))) << std::hex << bits;
  }
}

TYPED_TEST(NarrowFloat, EdgesOfTheRange) {
  using Element = typename TypeParam::Element;
  constexpr SmallFormat format = TypeParam::kFormat;
  const uint32_t sign = format.sign(), most = format.overflow();
  EXPECT_EQ(Element::round(INFINITY), most);
  EXPECT_EQ(Element::round(-INFINITY), sign | most);
  EXPECT_EQ(Element::round(float_of(0x7F7FFFFF)), most);
  EXPECT_EQ(Element::round(0.0f), 0);
  EXPECT_EQ(Element::round(-0.0f), sign);
  EXPECT_EQ(Element::round(float_of(1)), 0);
  EXPECT_EQ(Element::round(float_of(0x80000001)), sign);
  for (uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0xFFFFFFFFu})
    EXPECT_TRUE(rounds_to<TypeParam>(float_of(nan), format.nan())) << nan;
}

}  // namespace
}  // namespace onehop::test
