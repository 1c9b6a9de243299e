#include "tools/onehop/bench/table.hpp"

#include <gtest/gtest.h>

namespace onehop::bench {
namespace {

TEST(Table, ColumnsStandToTheRightAndEmptyOnesAreLeftOut) {
  Table table({"size", "nothing", "µs", "verdict"});
  table.add({"64 B", "", "2.5", "faster"});
  table.add({"42 KiB", "", "12.5"});
  EXPECT_EQ(table.text(),
            "    size    µs  verdict\n"
            "    64 B   2.5  faster\n"
            "  42 KiB  12.5\n");
}

TEST(Table, Sizes) {
  EXPECT_EQ(human(8), "8 B");
  EXPECT_EQ(human(1000), "1000 B");
  EXPECT_EQ(human(1024), "1 KiB");
  EXPECT_EQ(human(43008), "42 KiB");
  EXPECT_EQ(human(1536 << 10), "1.5 MiB");
  EXPECT_EQ(human(64 << 20), "64 MiB");
  EXPECT_EQ(human(1025), "1025 B");
}

}  // namespace
}  // namespace onehop::bench
