// Where the staging memory is: which kinds are tried, that all ranks end with the same one, and what they
// say.
#include <gtest/gtest.h>

#include <set>

#include "test/node/job.hpp"
#include "test/node/names.hpp"

namespace onehop::node {
namespace {

const Environment kHost = {{"ONEHOP_STAGING", "host"}}, kMute = {{"ONEHOP_TEST_MUTE", "1"}},
                  kBlindAndMute = {{"ONEHOP_TEST_BLIND", "1"}, {"ONEHOP_TEST_MUTE", "1"}};

Environment failing(const char* what) {
  return {{"ONEHOP_STANDIN_FAIL", what}};
}

/// Runs `plain` and expects one line of the first rank's, with these parts; calls are taken up to the limit.
void run_on(Job job, std::initializer_list<std::string> parts) {
  job.scenario = "plain";
  job.argument = "524288";
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> on = outcome.processes[0].log("ON for");
  EXPECT_EQ(outcome.log(" for a communicator").size(), 1u);
  ASSERT_EQ(on.size(), 1u);
  for (const std::string& part : parts)
    EXPECT_NE(on[0].find(part), std::string::npos) << part << ": " << on[0];
}

/// As run_on(), but every call goes to NCCL.
void run_off(Job job, std::initializer_list<std::string> parts) {
  job.scenario = "plain";
  job.argument = "declined";
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> off = outcome.processes[0].log("OFF for");
  EXPECT_EQ(outcome.log(" for a communicator").size(), 1u);
  ASSERT_EQ(off.size(), 1u);
  for (const std::string& part : parts)
    EXPECT_NE(off[0].find(part), std::string::npos) << part << ": " << off[0];
}

TEST(Staging, IsInDeviceMemoryFirst) {
  for (const char* choice : {"auto", "p2p"})
    run_on({.environment = {{"ONEHOP_STAGING", choice}}}, {"one-shot push", "staging in device memory, "});
}

// Protects: nodes without peer access, and users who keep NCCL from it.
TEST(Staging, IsInHostMemoryWherePeersAreAvoided) {
  const std::string nccl = "because not staging in device memory: NCCL is told to avoid peer access";
  for (const int ranks : {2, 5})
    run_on({.ranks = ranks, .environment = {{"NCCL_P2P_DISABLE", "1"}}},
           {"pull", "staging in host memory, ", nccl});
  // One rank is enough, whichever it is.
  for (const int rank : {0, 2})
    run_on({.ranks = 3, .of = {{rank, {{"NCCL_P2P_LEVEL", "PHB"}}}}}, {"staging in host memory, ", nccl});
  run_on({.ranks = 3, .environment = kHost},
         {"staging in host memory, ",
          "because not staging in device memory: not asked for (ONEHOP_STAGING=host)"});
}

TEST(Staging, IsNowhereElseThanItWasAskedFor) {
  run_off({.environment = {{"ONEHOP_STAGING", "p2p"}, {"NCCL_P2P_DISABLE", "1"}}},
          {"device memory: NCCL is told to avoid peer access",
           "host memory: not asked for (ONEHOP_STAGING=p2p)"});
  Environment p2p = failing("import");
  p2p["ONEHOP_STAGING"] = "p2p";
  run_off({.environment = p2p}, {"cannot reach the staging memory of a peer", "ONEHOP_STAGING=p2p"});
}

// Protects: one rank that cannot map is everybody's fall-back, or the others would wait for it for ever.
TEST(Staging, FallsBackOnAllRanksWhereOneCannotMap) {
  for (const int rank : {0, 1, 2})
    run_on({.ranks = 3, .of = {{rank, failing("import")}}},
           {"staging in host memory, ",
            "because not staging in device memory: rank " + std::to_string(rank) +
                " cannot reach the staging memory of a peer: cannot import memory: "});
}

TEST(Staging, FallsBackWithinAProcessToo) {
  const Outcome outcome =
      run_counted({.scenario = "one_thread", .ranks = 1, .argument = "3", .environment = failing("peer")});
  ASSERT_EQ(outcome.log("ON for").size(), 1u);
  for (const char* part : {"staging in host memory", "rank 0 cannot reach", "cannot enable peer access"})
    EXPECT_NE(outcome.log("ON for")[0].find(part), std::string::npos) << outcome.log("ON for")[0];
}

// Protects: peers by pointer and by handle, and set-up of several ranks of a process at once.
TEST(Staging, InHostMemoryServesSeveralGpusOfAProcess) {
  run_counted({.scenario = "one_thread", .ranks = 1, .argument = "8", .environment = kHost});
  run_counted({.scenario = "threads", .ranks = 1, .argument = "3", .environment = kHost});
  run_counted({.scenario = "two_each", .ranks = 3, .environment = kHost});
}

// Protects: each of the two ways to a peer's host memory where the other is closed, for one rank or for all.
TEST(Staging, InHostMemoryIsFoundBySocketOrThroughProc) {
  Environment all_mute = kHost, all_blind = kHost;
  all_mute.merge(Environment(kMute));
  all_blind["ONEHOP_TEST_BLIND"] = "1";
  for (const Environment& environment : {all_mute, all_blind})
    run_on({.ranks = 3, .environment = environment}, {"staging in host memory, "});
  for (const int rank : {0, 2})
    run_on({.ranks = 3, .environment = kHost, .of = {{rank, kMute}}}, {"staging in host memory, "});
}

// Protects: what works on no rank's GPU, or on one rank's GPU only.
TEST(Staging, OffWhereHostMemoryCannotBeUsedEither) {
  run_off({.ranks = 3, .environment = kHost, .of = {{1, failing("register")}}},
          {"staging in host memory: rank 1 has no staging memory: cannot register host memory: "});
  run_off({.ranks = 3, .environment = kHost, .of = {{2, kBlindAndMute}}},
          {"staging in host memory: rank 2 cannot reach the staging memory of a peer: opening the shared "
           "memory of "
           "process "});
  run_off({.ranks = 3, .of = {{0, failing("import")}, {1, failing("register")}}},
          {"staging in device memory: rank 0 cannot reach", "; staging in host memory: rank 1 has no"});
  run_off({.ranks = 3, .of = {{1, failing("allocate")}}},
          {"staging in device memory: rank 1 has no", "; staging in host memory: rank 1 has no"});
}

// Protects: kernels that could not be loaded are missing with either kind of memory.
TEST(Staging, OffWhereTheKernelsCannotBeLoaded) {
  run_off({.ranks = 3, .of = {{1, failing("kernels")}}},
          {"rank 1 has no staging memory: cannot load the kernels"});
}

// Protects: a method that the user asked for, and no other in its place; said once, and NCCL serves.
TEST(Staging, OffWhereAPinnedMethodCannotServe) {
  const auto pinned = [](const char* algo, int ranks, Environment more = {}) {
    more["ONEHOP_ALGO"] = algo;
    return Job{.ranks = ranks, .environment = more};
  };
  for (const char* algo : {"oneshot", "twoshot-staged", "oneshot-pull"})
    run_off(pinned(algo, 9), {" serves up to 8 ranks, and it has 9"});
  for (const char* algo : {"islands", "oneshot-staged", "twoshot-push"})
    run_off(pinned(algo, 3, kHost), {"the method that ONEHOP_ALGO asks for needs staging in device memory"});
  run_off(pinned("islands", 3, {{"NCCL_P2P_DISABLE", "1"}}),
          {"NCCL is told to avoid peer access", "the method that ONEHOP_ALGO asks for needs"});
  // Nor do more than eight ranks do without device memory.
  run_off({.ranks = 9, .of = {{4, failing("import")}}},
          {"rank 4 cannot reach", "staging in host memory serves up to 8 ranks, and it has 9"});
}

TEST(Staging, OffWhereThePartitionsDiffer) {
  const Environment striped = {{"ONEHOP_ISLANDS", "0,2/1,3"}}, halves = {{"ONEHOP_ISLANDS", "0-1/2-3"}};
  run_off({.ranks = 4, .environment = {{"ONEHOP_ALGO", "islands"}}, .of = {{2, striped}}},
          {"ONEHOP_ settings differ between rank 0 and rank 2"});
  run_off({.ranks = 4, .of = {{0, halves}, {1, halves}, {2, halves}, {3, striped}}},
          {"ONEHOP_ settings differ between rank 0 and rank 3"});
  run_on({.ranks = 4,
          .environment = {{"ONEHOP_ALGO", "islands"}, {"ONEHOP_ISLANDS", "0-1/2,3"}},
          .of = {{1, {{"ONEHOP_ISLANDS", "1,0/2-3"}}}}},
         {"islands up to"});
}

// Protects: memory, descriptors and mappings of communicators that are gone.
TEST(Staging, InHostMemoryLeavesNothingInItsProcess) {
  const Outcome outcome = run_counted({.scenario = "come_and_go", .argument = "60", .environment = kHost});
  EXPECT_EQ(outcome.log("staging in host memory").size(), 40u);
  EXPECT_TRUE(outcome.log("warning: ").empty());
}

// Protects: the memory of what was tried and did not work.
TEST(Staging, LeavesNothingOfTheKindThatFailed) {
  const Outcome outcome =
      run_counted({.scenario = "come_and_go", .argument = "60", .of = {{1, failing("import")}}});
  EXPECT_EQ(outcome.log("staging in host memory").size(), 40u);
}

TEST(Staging, LeavesNoNamesHoweverTheProcessesEnd) {
  const std::set<std::string> before = names();
  run_counted({.scenario = "names", .ranks = 3, .environment = kHost});
  run({.scenario = "names", .ranks = 3, .argument = "killed", .environment = kHost, .code = 128 + 9});
  EXPECT_EQ(new_name(before), "");
}

// Protects: the memory of a killed rank stays readable; its peers get an error, and no signal.
TEST(Staging, InHostMemoryOutlivesAKilledRank) {
  Environment environment = kHost;
  environment["ONEHOP_TIMEOUT_S"] = "1";
  run({.scenario = "one_is_killed", .ranks = 3, .environment = environment, .code_of = {{0, 128 + 9}}});
}

}  // namespace
}  // namespace onehop::node
