// Which variable carries onehop into a job, for every release of NCCL and whatever a site has set.
#include "tools/onehop/way_in.hpp"

#include <gtest/gtest.h>

namespace onehop::tool {
namespace {

const std::string kPlugin = "/opt/onehop/lib/libnccl-net-onehop.so";

/// What would be set, as "NAME=value NAME=value"; or "error".
std::string set_by(const Situation& situation) {
  const auto way = choose_way_in(situation);
  if (!way) return "error";
  EXPECT_FALSE(way->why.empty());
  std::string text;
  for (const auto& [name, value] : way->set) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

std::string alone(NcclVersion version) {
  return set_by({.versions = {version}, .plugin = kPlugin});
}

std::string with(NcclVersion version, Environment environment, std::vector<std::string> defaults = {}) {
  return set_by({.versions = {version},
                 .environment = std::move(environment),
                 .plugin = kPlugin,
                 .defaults = std::move(defaults)});
}

const std::string kPath = "NCCL_NET_PLUGIN=" + kPlugin;
const std::string kPreload = "LD_PRELOAD=" + kPlugin;
const std::string kSuffix = "NCCL_NET_PLUGIN=onehop LD_LIBRARY_PATH=/opt/onehop/lib";

TEST(WayIn, OfEveryRelease) {
  for (int minor = 10; minor <= 32; ++minor)
    for (const int patch : {0, 5, 99})
      EXPECT_EQ(alone(nccl(2, minor, patch)), minor <= 20 ? kSuffix : kPath) << "2." << minor << "." << patch;
}

// Protects: a release that nobody has looked at keeps its NCCL, whatever else is found or asked for.
TEST(WayIn, OfAnUnknownReleaseIsNone) {
  for (const NcclVersion unknown :
       {nccl(2, 33), nccl(2, 99), nccl(3, 0), NcclVersion{2804}, NcclVersion{0}}) {
    EXPECT_EQ(alone(unknown), "error") << to_string(unknown);
    EXPECT_EQ(set_by({.versions = {nccl(2, 28), unknown}, .plugin = kPlugin}), "error");
    EXPECT_EQ(set_by({.versions = {unknown}, .plugin = kPlugin, .preload = true}), "error");
  }
}

TEST(WayIn, KeepsWhatIsInTheLibraryPath) {
  EXPECT_EQ(with(nccl(2, 18), {{"LD_LIBRARY_PATH", "/a:/b"}}),
            "NCCL_NET_PLUGIN=onehop LD_LIBRARY_PATH=/a:/b:/opt/onehop/lib");
}

// Protects: a site's network plugin, without which a job on several nodes is slow or does not run.
TEST(WayIn, KeepsTheSitesNetworkPlugin) {
  const Environment set = {{"NCCL_NET_PLUGIN", "aws-ofi"}};
  const std::string profiler = "NCCL_PROFILER_PLUGIN=" + kPlugin, tuner = "NCCL_TUNER_PLUGIN=" + kPlugin;
  for (int minor = 10; minor <= 32; ++minor) {
    const std::string carrier = minor >= 27   ? kPath + ","
                                : minor >= 23 ? profiler
                                : minor >= 21 ? kPreload
                                : minor >= 19 ? tuner
                                              : kPreload;
    const bool list = minor >= 27;
    EXPECT_EQ(with(nccl(2, minor, 3), set), carrier + (list ? "aws-ofi" : "")) << minor;
    EXPECT_EQ(with(nccl(2, minor, 3), {}, {"net"}), carrier + (list ? "libnccl-net.so" : "")) << minor;
  }
  EXPECT_EQ(with(nccl(2, 28), {{"NCCL_NET_PLUGIN", "a,/b/libnccl-net-b.so"}}),
            kPath + ",a,/b/libnccl-net-b.so");
}

TEST(WayIn, TakesNoPlaceThatIsTaken) {
  const Environment net = {{"NCCL_NET_PLUGIN", "site"}};
  Environment profiler = net, tuner = net;
  profiler["NCCL_PROFILER_PLUGIN"] = "p";
  tuner["NCCL_TUNER_PLUGIN"] = "t";
  EXPECT_EQ(with(nccl(2, 25), profiler), kPreload);
  EXPECT_EQ(with(nccl(2, 25), net, {"profiler"}), kPreload);
  EXPECT_EQ(with(nccl(2, 20), tuner), kPreload);
  EXPECT_EQ(with(nccl(2, 20), net, {"tuner"}), kPreload);
}

TEST(WayIn, NoneStandsForNoPlugin) {
  for (const char* none : {"none", "NONE"})
    EXPECT_EQ(with(nccl(2, 28), {{"NCCL_NET_PLUGIN", none}}, {"net"}), kPath);
}

TEST(WayIn, IsPreloadWhereItIsAskedForOrReleasesDiffer) {
  EXPECT_EQ(set_by({.versions = {nccl(2, 28)}, .plugin = kPlugin, .preload = true}), kPreload);
  EXPECT_EQ(set_by({.environment = {{"LD_PRELOAD", "/x.so"}}, .plugin = kPlugin, .preload = true}),
            "LD_PRELOAD=/x.so:" + kPlugin);
  EXPECT_EQ(set_by({.versions = {nccl(2, 28), nccl(2, 18)}, .plugin = kPlugin}), kPreload);
  EXPECT_EQ(set_by({.versions = {nccl(2, 28), nccl(2, 21)}, .plugin = kPlugin}), kPath) << "both take it";
}

TEST(WayIn, WithoutAnyLibraryIsNone) {
  EXPECT_EQ(set_by({.plugin = kPlugin}), "error");
}

TEST(WayIn, IsNotGoneTwice) {
  EXPECT_EQ(with(nccl(2, 28), {{"NCCL_NET_PLUGIN", kPlugin + ",libnccl-net.so"}}), "");
  EXPECT_EQ(with(nccl(2, 18), {{"NCCL_NET_PLUGIN", "onehop"}}), "");
  EXPECT_EQ(with(nccl(2, 28), {{"LD_PRELOAD", "/a.so " + kPlugin}}), "");
}

// Protects: a value that NCCL or the loader would cut in two, or not read to its end.
TEST(WayIn, DoesNotPutAPathWhereItCannotStand) {
  const auto at = [](const std::string& folder, NcclVersion version, bool preload = false,
                     Environment environment = {}) {
    return set_by({.versions = {version},
                   .environment = std::move(environment),
                   .plugin = folder + "/libnccl-net-onehop.so",
                   .preload = preload});
  };
  EXPECT_EQ(at("/a b", nccl(2, 28), true), "error");
  EXPECT_EQ(at("/a:b", nccl(2, 28), true), "error");
  EXPECT_EQ(at("/a:b", nccl(2, 18)), "error");
  EXPECT_EQ(at("/a b", nccl(2, 28)), "NCCL_NET_PLUGIN=/a b/libnccl-net-onehop.so");
  EXPECT_EQ(at("/a,b", nccl(2, 28)), "LD_PRELOAD=/a,b/libnccl-net-onehop.so");
  EXPECT_EQ(at("/a,b", nccl(2, 28), false, {{"NCCL_NET_PLUGIN", "site"}}),
            "LD_PRELOAD=/a,b/libnccl-net-onehop.so");
  const std::string deep = "/" + std::string(300, 'd');
  EXPECT_EQ(at(deep, nccl(2, 28)), "LD_PRELOAD=" + deep + "/libnccl-net-onehop.so");
  EXPECT_EQ(set_by({.versions = {nccl(2, 18)}, .plugin = "/opt/renamed.so"}), "LD_PRELOAD=/opt/renamed.so");
}

}  // namespace
}  // namespace onehop::tool
