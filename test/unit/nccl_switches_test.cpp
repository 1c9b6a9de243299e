// NCCL's own switches: a user who pinned what NCCL does gets exactly that.
#include "plugin/nccl_switches.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace onehop::test {
namespace {

TEST(NcclSwitches, PinsAllReduce) {
  for (const char* value :
       {"ring", "Ring", "TREE", "nvls", "nvlstree", "LL", "ll128", "Simple", "ring,tree", "unknown",
        // For one function.
        "allreduce:ring", "AllReduce:Tree", "ALLREDUCE:ring,tree",
        // Several lists.
        "bcast:ring;tree", "ring;bcast:tree", "bcast:ring;allreduce:tree", "allreduce:tree;bcast:ring",
        "ring;allreduce:^tree", "^nvls;allreduce:ring", ";ring", "bcast:ring;;allreduce:tree",
        // One pins, the other only excludes.
        "allreduce:ring;^nvls"})
    EXPECT_TRUE(pins_all_reduce(value)) << value;
}

TEST(NcclSwitches, LeavesAllReduceFree) {
  for (const char* value :
       {"", ";", ";;",
        // Excludes only.
        "^nvls", "^nvls,nvlstree", "^ring", "allreduce:^ring", "ALLREDUCE:^tree", "^LL128;bcast:ring",
        // About other functions.
        "bcast:ring", "broadcast:ring;reduce:tree", "allgather:ring", "reducescatter:ring;allgather:nvls",
        "allreduce2:ring", "all:ring", "xallreduce:ring", "reduce:ring", "bcast:ring;",
        // Nothing behind the name.
        "allreduce:", "allreduce:;bcast:ring"})
    EXPECT_FALSE(pins_all_reduce(value)) << value;
}

TEST(NcclSwitches, ReadsNoFurtherThanTheText) {
  const std::string text = "allreduce:ring";
  EXPECT_FALSE(pins_all_reduce(std::string_view(text).substr(0, 10)));
  EXPECT_TRUE(pins_all_reduce(std::string_view(text).substr(0, 11))) << "a one-letter name";
}

class NcclEnvironment : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",
                                           "NCCL_GRAPH_MIXING_SUPPORT"};
  NcclEnvironment() { clear(); }
  ~NcclEnvironment() override { clear(); }
  static void clear() {
    for (const char* name : kNames) unsetenv(name);
  }
};

TEST_F(NcclEnvironment, EachPinAloneVetoesAndIsNamed) {
  EXPECT_EQ(nccl_switch_veto(), std::nullopt);
  const std::pair<const char*, const char*> vetoes[] = {
      {"NCCL_ALGO", "Ring"}, {"NCCL_ALGO", "allreduce:tree"}, {"NCCL_PROTO", "LL"}};
  for (const auto& [name, value] : vetoes) {
    setenv(name, value, 1);
    const auto veto = nccl_switch_veto();
    ASSERT_TRUE(veto) << name << "=" << value;
    EXPECT_EQ(veto->find(std::string(name) + "=" + value), 0u) << *veto;
    clear();
  }
  const std::pair<const char*, const char*> no_vetoes[] = {
      {"NCCL_ALGO", "^nvls"},     {"NCCL_ALGO", ""},         {"NCCL_PROTO", "^LL128"},
      {"NCCL_PROTO", "bcast:LL"}, {"NCCL_P2P_DISABLE", "1"}, {"NCCL_P2P_LEVEL", "LOC"}};
  for (const auto& [name, value] : no_vetoes) {
    setenv(name, value, 1);
    EXPECT_EQ(nccl_switch_veto(), std::nullopt) << name << "=" << value;
    clear();
  }
}

/// No reason to stay off: host memory needs no peer access.
TEST_F(NcclEnvironment, EachSwitchOfPeerAccessAloneIsFollowedAndNamed) {
  EXPECT_EQ(nccl_avoids_peers(), std::nullopt);
  const std::pair<const char*, const char*> avoids[] = {
      {"NCCL_P2P_DISABLE", "1"},   {"NCCL_P2P_DISABLE", "2"},        {"NCCL_P2P_LEVEL", "LOC"},
      {"NCCL_P2P_DISABLE", "0x1"}, {"NCCL_P2P_LEVEL", "4294967296"}, {"NCCL_P2P_LEVEL", "loc"},
      {"NCCL_P2P_LEVEL", "0"},     {"NCCL_P2P_LEVEL", "PHB"},        {"NCCL_P2P_LEVEL", "NVL"},
      {"NCCL_P2P_LEVEL", "PIX"},   {"NCCL_P2P_LEVEL", "PXB"},        {"NCCL_P2P_LEVEL", "3"},
      {"NCCL_P2P_LEVEL", "-1"},    {"NCCL_P2P_LEVEL", "LOCAL"}};
  for (const auto& [name, value] : avoids) {
    setenv(name, value, 1);
    EXPECT_EQ(nccl_avoids_peers(), std::string(name) + "=" + value);
    EXPECT_EQ(nccl_switch_veto(), std::nullopt) << name << "=" << value;
    clear();
  }
  const std::pair<const char*, const char*> free[] = {{"NCCL_P2P_DISABLE", "0"}, {"NCCL_P2P_DISABLE", ""},
                                                      {"NCCL_P2P_LEVEL", "SYS"}, {"NCCL_P2P_LEVEL", "sys"},
                                                      {"NCCL_P2P_LEVEL", "5"},   {"NCCL_P2P_LEVEL", "4"},
                                                      {"NCCL_P2P_LEVEL", ""},    {"NCCL_ALGO", "Ring"}};
  for (const auto& [name, value] : free) {
    setenv(name, value, 1);
    EXPECT_EQ(nccl_avoids_peers(), std::nullopt) << name << "=" << value;
    clear();
  }
}

TEST_F(NcclEnvironment, GraphsMixUnlessSwitchedOff) {
  EXPECT_TRUE(nccl_mixes_graphs());
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  EXPECT_FALSE(nccl_mixes_graphs());
  // What NCCL, or some release of it, takes for another number or for none: then graphs are kept in order.
  for (const char* value : {"1", "0x1", "010", "-1", "4294967296", "", "yes", "99999999999999999999"}) {
    setenv("NCCL_GRAPH_MIXING_SUPPORT", value, 1);
    EXPECT_TRUE(nccl_mixes_graphs()) << value;
  }
  for (const char* value : {"00", "0x0", " 0", "0 or 1"}) {
    setenv("NCCL_GRAPH_MIXING_SUPPORT", value, 1);
    EXPECT_FALSE(nccl_mixes_graphs()) << value;
  }
}

TEST_F(NcclEnvironment, WhatIsShownIsOneLine) {
  setenv("NCCL_ALGO", "ring\n\x1b[2J", 1);
  EXPECT_EQ(nccl_switch_veto(), "NCCL_ALGO=ring??[2J pins what NCCL uses for AllReduce");
}

}  // namespace
}  // namespace onehop::test
