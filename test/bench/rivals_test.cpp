#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tools/onehop/bench/side_spec.hpp"

namespace onehop::bench {
namespace {

TEST(Rivals, SettingsAreRead) {
  EXPECT_EQ(*tool::parse_nccl_settings("NCCL_PROTO=LL  NCCL_ALGO=^Tree,a=b"),
            (tool::NcclSettings{{"NCCL_PROTO", "LL"}, {"NCCL_ALGO", "^Tree,a=b"}}));
  for (const char* bad : {"", " ", "NCCL_PROTO", "=LL", "NCCL_PROTO=LL Tree"})
    EXPECT_FALSE(tool::parse_nccl_settings(bad)) << bad;
}

TEST(Rivals, NcclIsFirstAndOnehopSecond) {
  Options options;
  options.rivals = options.control = true;
  options.more_rivals = {"NCCL_ALGO=Tree"};
  const auto sides = sides_of(options);
  ASSERT_TRUE(sides);
  EXPECT_TRUE(!(*sides)[0].onehop && (*sides)[0].settings.empty());
  EXPECT_TRUE((*sides)[1].onehop && (*sides)[1].settings.empty());
  EXPECT_TRUE((*sides)[2].settings.empty());
  EXPECT_EQ(sides->back().method, "NCCL_ALGO=Tree");
  EXPECT_EQ(std::count_if(sides->begin(), sides->end(), [](const SideSpec& side) { return side.onehop; }), 1);
}

TEST(Rivals, ForcedPeersAreNoRivalWhereTheUserForbadeThem) {
  const auto has_peers = [] {
    const auto rivals = tool::usual_rivals();
    return std::count(rivals.begin(), rivals.end(), "NCCL_P2P_LEVEL=SYS") == 1;
  };
  unsetenv("NCCL_P2P_DISABLE");
  EXPECT_TRUE(has_peers());
  setenv("NCCL_P2P_DISABLE", "1", 1);
  EXPECT_FALSE(has_peers());
  unsetenv("NCCL_P2P_DISABLE");
}

}  // namespace
}  // namespace onehop::bench
