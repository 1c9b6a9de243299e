// Which communicators are on, and that exactly one line per node says so.
#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

void expect_one_off_line(const Job& job, const std::string& reason, size_t lines = 1) {
  const Outcome outcome = run_counted(job);
  EXPECT_TRUE(outcome.log("ON for").empty());
  const std::vector<std::string> off = outcome.log("OFF for");
  EXPECT_EQ(off.size(), lines);
  for (const std::string& line : off) EXPECT_NE(line.find(reason), std::string::npos) << line;
}

TEST(Verdict, OnIsSaidOnce) {
  for (const int ranks : {2, 8}) {
    const Outcome outcome = run_counted({.scenario = "plain", .ranks = ranks, .argument = "524288"});
    const std::vector<std::string> on =
        outcome.log("ON for a communicator of " + std::to_string(ranks) + " ranks");
    ASSERT_EQ(on.size(), 1u);
    for (const char* part :
         {ranks == 2 ? "ranks: one-shot push up to 524288 bytes;"
                     : "ranks: one-shot push up to 65536 bytes, two-shot push up to 524288 bytes;",
          "; all types and built-in operators;", "; staging in device memory, "})
      EXPECT_NE(on[0].find(part), std::string::npos) << on[0];
    EXPECT_EQ(on[0].find("because"), std::string::npos) << "nothing that would have been better: " << on[0];
    EXPECT_EQ(outcome.processes[0].log("ON for").size(), 1u) << "the first rank of the node says it";
    EXPECT_TRUE(outcome.log("OFF for").empty());
    EXPECT_TRUE(outcome.log("warning: ").empty());
    EXPECT_TRUE(outcome.log("error: ").empty());
  }
}

// Protects: memory of another node cannot be mapped. Each node says it once.
TEST(Verdict, SeveralNodesAreDeclined) {
  const Environment a = {{"NCCL_HOSTID", "a"}}, b = {{"NCCL_HOSTID", "b"}};
  expect_one_off_line(
      {.scenario = "plain", .ranks = 4, .argument = "declined", .of = {{0, a}, {1, a}, {2, b}, {3, b}}},
      "rank 2 is on another node than rank 0", 2);
}

TEST(Verdict, OneNodeIsOneNodeWhateverItIsCalled) {
  const Outcome outcome =
      run_counted({.scenario = "plain", .argument = "524288", .environment = {{"NCCL_HOSTID", "a"}}});
  EXPECT_EQ(outcome.log("ON for").size(), 1u);
}

TEST(Verdict, OneRankIsDeclined) {
  expect_one_off_line({.scenario = "plain", .ranks = 1, .argument = "declined"}, "one rank");
}

// Protects: functions of a release that nobody has looked at may mean something else.
TEST(Verdict, AnUnknownNcclIsDeclined) {
  expect_one_off_line({.scenario = "plain",
                       .argument = "declined",
                       .environment = {{"ONEHOP_STANDIN_NCCL_VERSION", "29900"}}},
                      "NCCL version 29900 is not known");
}

// Protects: several GPUs of a process are one node, and one line.
TEST(Verdict, SeveralGpusOfAProcessSayItOnce) {
  EXPECT_EQ(run_counted({.scenario = "one_thread", .ranks = 1, .argument = "4"}).log("ON for").size(), 1u);
}

}  // namespace
}  // namespace onehop::node
