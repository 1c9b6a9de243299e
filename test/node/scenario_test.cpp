// Acceptance scenarios that no other test has as a whole, by the numbers of docs/scenarios.md.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "onehop/onehop.h"
#include "test/folder.hpp"
#include "test/node/job.hpp"

namespace onehop::node {
namespace {

const std::string kPlugin = PLUGIN, kFolder = kPlugin.substr(0, kPlugin.rfind('/')), kSite = SITE_NET;

Job plain(const std::string& counted) {
  return {.scenario = "plain", .argument = counted};
}

/// The lines of all ranks that say what a communicator came to.
std::vector<std::string> verdicts(const Job& job) {
  return run_counted(job).log(" for a communicator");
}

void expect_one(const std::vector<std::string>& lines, std::initializer_list<std::string> parts) {
  ASSERT_EQ(lines.size(), 1u);
  for (const std::string& part : parts)
    EXPECT_NE(lines[0].find(part), std::string::npos) << part << ": " << lines[0];
}

/// What the program's calls come to with NCCL_NET_PLUGIN=`value`, and what NCCL says of plugins.
std::vector<std::string> with_name(const std::string& value, bool on) {
  Job job = plain("524288");
  job.load = Load::kNot;
  job.environment = {{"NCCL_NET_PLUGIN", value}, {"NCCL_DEBUG", "INFO"}};
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  job.environment["LD_LIBRARY_PATH"] = kFolder + (libraries != nullptr ? std::string(":") + libraries : "");
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.log("ON for a communicator of 2 ranks").size(), on ? 1u : 0u) << value;
  std::vector<std::string> said;
  for (const Process& process : outcome.processes) {
    EXPECT_EQ(process.statistics.empty(), !on) << value;
    EXPECT_EQ(process.errors.find("onehop") == std::string::npos, !on || process.log().empty())
        << process.errors;
    said.push_back(process.output + process.errors);
  }
  return said;
}

TEST(Scenario, A2_IsOnUnderEveryNameThatNcclFinds) {
  with_name("onehop", true);                 // a suffix
  with_name("libnccl-net-onehop.so", true);  // a file name
  with_name(kPlugin, true);                  // a path
  with_name(kPlugin + "," + kPlugin, true);
}

TEST(Scenario, A2_IsAbsentUnderEveryOther) {
  for (const char* name : {"none", "", "onehopp", "/nowhere/libnccl-net-onehop.so", "libnccl-net-onehop"})
    with_name(name, false);
  with_name("/" + std::string(300, 'x'), false);
}

TEST(Scenario, A2_LeavesASecondPluginInPlace) {
  for (const std::string& value : {kPlugin + "," + kSite, kSite + "," + kPlugin})
    for (const std::string& said : with_name(value, true))
      EXPECT_NE(said.find("Loaded NET plugin " + kSite), std::string::npos) << said;
}

TEST(Scenario, A2_APathOfThreeHundredCharacters) {
  const test::Folder folder;
  std::string path = folder.path();
  while (path.size() < 290) {
    path += "/" + std::string(60, 'd');
    std::filesystem::create_directory(path);
  }
  path += "/libnccl-net-onehop.so";
  std::filesystem::create_symlink(kPlugin, path);
  with_name(path, true);
}

// Releases that patched-releases.md has; the first of those before, and what comes after them.
TEST(Scenario, A5_KnownReleasesAreServedAndOthersDeclined) {
  for (const char* version :
       {"21212", "21404", "21602", "21805", "22005", "22304", "22605", "22903", "23007", "23203"}) {
    Job job = plain("524288");
    job.environment = {{"ONEHOP_STANDIN_NCCL_VERSION", version}};
    expect_one(verdicts(job), {"ON for"});
  }
  for (const char* version : {"29900", "20905"}) {
    Job job = plain("declined");
    job.environment = {{"ONEHOP_STANDIN_NCCL_VERSION", version}};
    expect_one(verdicts(job), {"OFF for", std::string("NCCL version ") + version + " is not known"});
  }
}

/// A setting of the user's that onehop must follow, and what it says then.
struct Wish {
  const char *name, *value, *said;
};

// By the environment, by NCCL_CONF_FILE, and by nccl.conf in /etc. The job's environment afterwards is what
// NCCL alone leaves: NCCL copies what is in these files.
TEST(Scenario, B7_WishesAreFollowedWhereverTheyAreWritten) {
  const Wish wishes[] = {{"NCCL_P2P_DISABLE", "1", "staging in host memory"},
                         {"NCCL_P2P_LEVEL", "LOC", "staging in host memory"},
                         {"NCCL_ALGO", "allreduce:tree", "NCCL_ALGO=allreduce:tree pins"},
                         {"NCCL_PROTO", "LL", "NCCL_PROTO=LL pins"},
                         {"ONEHOP_ENABLE", "0", "ONEHOP_ENABLE=0"}};
  for (const Wish& wish : wishes) {
    const std::string line = std::string(wish.name) + "=" + wish.value + "\n";
    const Job ways[] = {
        {.environment = {{wish.name, wish.value}}},
        {.environment = {{"NCCL_CONF_FILE", "user.conf"}}, .files = {{"user.conf", line}}},
        {.environment = {{"ONEHOP_STANDIN_ETC", "."}}, .files = {{"nccl.conf", line}}},
    };
    for (Job job : ways) {
      job.scenario = "environment";
      job.environment["ONEHOP_STATS_FILE"] = "statistics";
      const Outcome with = run(job);
      expect_one(with.log(" for a communicator"), {wish.said});
      job.load = Load::kNot;
      const Outcome without = run(job);
      for (size_t r = 0; r < 2; ++r) {
        const auto variables = [](const Process& process) {
          std::string text = process.output.substr(0, process.output.find("expected"));
          const std::string name = "NCCL_NET_PLUGIN=";
          if (const size_t at = text.find(name); at != std::string::npos)
            text.erase(at, text.find('\n', at) + 1 - at);
          return text;
        };
        EXPECT_EQ(variables(with.processes[r]), variables(without.processes[r]));
        EXPECT_NE(variables(without.processes[r]).find(line), std::string::npos) << line;
      }
    }
  }
}

// Another version is this one with another name for itself.
TEST(Scenario, B8_TwoVersionsDeclineOnAllRanks) {
  const test::Folder folder;
  std::ifstream file(kPlugin, std::ios::binary);
  std::string object{std::istreambuf_iterator<char>(file), {}};
  // Four characters: the compiler may have put them into an instruction.
  const std::string version = std::string(ONEHOP_VERSION).substr(0, 4);
  size_t places = 0;
  for (size_t at = 0; (at = object.find(version, at)) != std::string::npos; ++at, ++places) object[at] = '9';
  ASSERT_GE(places, 1u);
  const std::string path = folder.path() + "/libnccl-net-onehop.so";
  std::ofstream(path, std::ios::binary) << object;
  Job job = plain("declined");
  job.ranks = 3;
  job.of = {{1, {{"NCCL_NET_PLUGIN", path}}}};
  expect_one(verdicts(job), {"OFF for", "rank 1 runs onehop 9", "rank 0 runs " ONEHOP_VERSION});
}

Environment failing(const std::string& what) {
  return {{"ONEHOP_STANDIN_FAIL", what}};
}

// Errors that CUDA gives where peers cannot be reached: all ranks draw the same conclusion, nothing stays,
// and communicators that follow come to the same.
TEST(Scenario, B9_ErrorsOfCudaOnOneRankAreEverybodysAnswer) {
  for (const char* code : {"101", "217", "711"}) {
    Job job{.scenario = "come_and_go", .argument = "24"};
    job.of = {{1, failing(std::string("import=") + code)}};
    const Outcome outcome = run_counted(job);
    EXPECT_EQ(outcome.log("staging in host memory").size(), 16u) << code;
    EXPECT_EQ(outcome.log("because not staging in device memory: rank 1 cannot reach").size(), 16u) << code;
    EXPECT_TRUE(outcome.log("warning: ").empty());
    EXPECT_TRUE(outcome.log("error: ").empty());

    job.argument = "24 declined";
    job.environment = {{"ONEHOP_STAGING", "p2p"}};
    const Outcome off = run_counted(job);
    EXPECT_EQ(off.log("OFF for a communicator of 2 ranks").size(), 16u) << code;
    EXPECT_TRUE(off.log("ON for").empty());
  }
  // Within a process peers are enabled, not imported.
  for (const char* code : {"101", "217", "711"}) {
    const Outcome outcome = run_counted({.scenario = "one_thread",
                                         .ranks = 1,
                                         .argument = "3",
                                         .environment = failing(std::string("peer=") + code)});
    expect_one(outcome.log("ON for"), {"staging in host memory", "cannot enable peer access"});
  }
}

TEST(Scenario, B9_NineRanks) {
  Job job = plain("524288");
  job.ranks = 9;
  expect_one(verdicts(job), {"ON for a communicator of 9 ranks", "islands"});
  job = plain("declined");
  job.ranks = 9;
  job.environment = {{"ONEHOP_STAGING", "host"}};
  expect_one(verdicts(job), {"OFF for a communicator of 9 ranks", "serves up to 8 ranks"});
  job.environment = {};
  job.of = {{4, {{"ONEHOP_ENABLE", "0"}}}};
  expect_one(verdicts(job), {"OFF for a communicator of 9 ranks", "ONEHOP_ENABLE=0 (rank 4)"});
}

// Evenly and unevenly divided. No rank gets as far as memory: it would be killed there.
TEST(Scenario, B12_SeveralNodesAreDeclinedBeforeAnyMemory) {
  for (const int on_the_first : {1, 2, 3}) {
    Job job = plain("declined");
    job.ranks = 4;
    job.environment = {{"ONEHOP_STANDIN_KILL", "allocate:1"}, {"NCCL_HOSTID", "a"}};
    for (int rank = on_the_first; rank < job.ranks; ++rank) job.of[rank] = {{"NCCL_HOSTID", "b"}};
    const std::vector<std::string> off = verdicts(job);
    EXPECT_EQ(off.size(), 2u) << "each node says it once";
    for (const std::string& line : off) {
      EXPECT_NE(line.find("OFF for a communicator of 4 ranks"), std::string::npos) << line;
      EXPECT_NE(line.find(" is on another node than rank 0"), std::string::npos) << line;
    }
  }
}

}  // namespace
}  // namespace onehop::node
