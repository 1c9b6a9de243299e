// Contents and their sums: what the check of every result leans on.
#include "tools/onehop/bench/elements.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace onehop::bench {
namespace {

template <class T>
std::vector<T> values_of(const std::vector<unsigned char>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Elements, SumsAreThoseOfTheContents) {
  const ElementType& type = *find_type("float32");
  for (const size_t ranks : {2, 5, 16}) {
    std::vector<float> expected(kPeriod, 0);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto mine = values_of<float>(contents(type, rank, 3, 7));
      for (size_t i = 0; i < kPeriod; ++i) expected[i] += mine[i];
    }
    EXPECT_EQ(values_of<float>(sums(type, ranks, 3, 7)), expected);
  }
}

/// A result of another rank count, call or turn must not pass for this one.
TEST(Elements, SumsDifferWithEverything) {
  for (const ElementType& type : element_types()) {
    const auto sum = sums(type, 4, 1, 1);
    EXPECT_NE(sum, sums(type, 3, 1, 1)) << type.name;
    EXPECT_NE(sum, sums(type, 4, 2, 1)) << type.name;
    EXPECT_NE(sum, sums(type, 4, 1, 2)) << type.name;
    EXPECT_NE(sum, contents(type, 0, 1, 1)) << type.name;
    EXPECT_EQ(sum.size(), kPeriod * type.size);
  }
}

TEST(Elements, ShortFloatsAreEncodedRight) {
  const auto whole = values_of<float>(sums(*find_type("float32"), 16, 0, 0));
  const auto half = values_of<uint16_t>(sums(*find_type("float16"), 16, 0, 0));
  const auto brain = values_of<uint16_t>(sums(*find_type("bfloat16"), 16, 0, 0));
  for (size_t i = 0; i < kPeriod; ++i) {
    _Float16 expected = static_cast<_Float16>(whole[i]);
    uint16_t bits;
    std::memcpy(&bits, &expected, sizeof(bits));
    EXPECT_EQ(half[i], bits) << whole[i];
    uint32_t wide;
    std::memcpy(&wide, &whole[i], sizeof(wide));
    EXPECT_EQ(wide & 0xFFFF, 0U) << "not exact in bfloat16: " << whole[i];
    EXPECT_EQ(brain[i], wide >> 16) << whole[i];
  }
}

TEST(Elements, EveryWrongElementIsCounted) {
  const auto period = contents(*find_type("int32"), 1, 0, 0);
  std::vector<unsigned char> data(1000 * 4);
  repeat(period, data.data(), data.size());
  EXPECT_EQ(count_wrong(period, data.data(), data.size(), 4), 0U);
  for (const size_t element : {0, 17, 18, 999}) data[element * 4 + 3] ^= 0x80;
  EXPECT_EQ(count_wrong(period, data.data(), data.size(), 4), 4U);
}

TEST(Elements, RepeatingEndsWhereItShould) {
  const auto period = contents(*find_type("int8"), 0, 0, 0);
  for (const size_t bytes : {1, 15, 16, 17, 100}) {
    std::vector<unsigned char> data(bytes + 1, 0xEE);
    repeat(period, data.data(), bytes);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], period[i % kPeriod]) << bytes;
    EXPECT_EQ(data[bytes], 0xEE);
  }
}

}  // namespace
}  // namespace onehop::bench
