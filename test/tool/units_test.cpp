#include "tools/onehop/units.hpp"

#include <gtest/gtest.h>

namespace onehop::tool::test {
namespace {

TEST(Units, SizesAreReadable) {
  EXPECT_EQ(size_text(uint64_t{32} << 30), "32 GiB");
  EXPECT_EQ(size_text(256 << 20), "256 MiB");
  EXPECT_EQ(size_text(150754820096), "140.4 GiB");
  EXPECT_EQ(size_text(1000), "1000 bytes");
}

TEST(Units, TimesHaveThreeDigitsThatCount) {
  EXPECT_EQ(microseconds(2.414), "2.41");
  EXPECT_EQ(microseconds(9.996), "10.0");
  EXPECT_EQ(microseconds(12.44), "12.4");
  EXPECT_EQ(microseconds(145.4), "145");
}

}  // namespace
}  // namespace onehop::tool::test
