#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

// Protects: the entry of a destroyed communicator, whose address the next one gets; memory, descriptors,
// mappings.
TEST(Life, TwoHundredCommunicatorsLeaveNothingBehind) {
  const Outcome outcome = run_counted({.scenario = "come_and_go", .argument = "200"});
  EXPECT_EQ(outcome.log("ON for").size(), 133u);
  EXPECT_TRUE(outcome.log("warning: ").empty());
}

TEST(Life, ALateRankIsNotInTheTimeOfTheSetUp) {
  const Outcome outcome = run_counted({.scenario = "late_rank"});
  const auto on = outcome.log("ON for");
  ASSERT_EQ(on.size(), 1u);
  EXPECT_NE(on[0].find("; the ranks met in "), std::string::npos) << on[0];
}

TEST(Life, ChildrenGetTheirOwnVerdict) {
  const Outcome outcome = run_counted({.scenario = "family", .ranks = 4});
  EXPECT_EQ(outcome.log("ON for a communicator of 4 ranks").size(), 1u);
  EXPECT_EQ(outcome.log("ON for a communicator of 3 ranks").size(), 2u);
  EXPECT_EQ(outcome.log("OFF for a communicator of 1 ranks").size(), 1u);
}

TEST(Life, FinalizeWaitsForWhatWasEnqueued) {
  run_counted({.scenario = "finalize"});
}

TEST(Life, ExitWithoutDestroy) {
  run_counted({.scenario = "leave", .ranks = 3});
}

TEST(Life, CommunicatorsMayBeNonBlocking) {
  run_counted({.scenario = "non_blocking", .ranks = 3});
}

// Protects: the limit of a process, which says so, and what counts towards it.
TEST(Life, FiftyCommunicatorsStayWithinTheBudget) {
  for (const char* staging : {"p2p", "host"}) {
    const Outcome outcome =
        run_counted({.scenario = "fifty_communicators", .environment = {{"ONEHOP_STAGING", staging}}});
    const std::vector<std::string> on = outcome.log("ON for");
    ASSERT_FALSE(on.empty());
    const size_t fit = on.size() - 3, at = on[0].find(" MiB per rank");
    const double each = std::stod(on[0].substr(on[0].rfind(' ', at - 1)));
    EXPECT_LE(static_cast<double>(fit) * each, 256.5);  // `each` is rounded
    // The kind of memory is not chosen yet when the budget is asked, so the larger counts: 11 MiB here.
    EXPECT_GE(static_cast<double>(fit) * each, 256 - 12 - each) << "more would have fitted";
    EXPECT_EQ(outcome.log("OFF for").size(), 51 - fit);
    EXPECT_EQ(outcome.log("of staging memory for other communicators, and 256 MiB is the most").size(),
              51 - fit);
  }
}

TEST(Life, GraphsAndCommunicatorsMayEndInEitherOrder) {
  for (const char* first : {"graph", "communicator"})
    run_counted({.scenario = "graph_or_communicator_first", .argument = first});
}

TEST(Life, ExitInASignalHandler) {
  run({.scenario = "exit_in_a_handler", .ranks = 3, .code = 42});
}

TEST(Life, TwoCommunicatorsInOppositeOrder) {
  run_counted({.scenario = "opposite_order"});
}

// Protects: programs that drive several GPUs, capture, and look for errors.
TEST(Guest, LeavesTheThreadsStateAsItWas) {
  run_counted({.scenario = "thread_state", .argument = "taken"});
  run_counted({.scenario = "thread_state", .argument = "taken", .environment = {{"ONEHOP_STAGING", "host"}}});
  run_counted({.scenario = "thread_state", .argument = "declined", .environment = {{"ONEHOP_ENABLE", "0"}}});
  run_counted({.scenario = "thread_state",
               .argument = "declined",
               .environment = {{"ONEHOP_STANDIN_FAIL", "import=217,register=801"}}});
}

// Protects: nobody waits for ever for a rank that gave up, and nobody leaves before the program says so.
TEST(Failure, AbortFreesTheWaitingCallsOfItsRank) {
  run_counted({.scenario = "abort_one", .ranks = 4});
}

// Protects: a watchdog's abort of a communicator whose set-up waits, and whoever gets that address next.
TEST(Failure, AbortDuringSetUpLeavesNothingBehind) {
  run({.scenario = "abort_in_set_up", .ranks = 3});
}

TEST(Failure, ExitWhileACallWaits) {
  run_counted({.scenario = "leave_stuck", .ranks = 3});
}

TEST(Failure, RevokeFreesTheWaitingCalls) {
  run_counted({.scenario = "revoke", .ranks = 3});
}

TEST(Failure, ShrinkWithAbortFreesTheWaitingCalls) {
  run_counted({.scenario = "shrink_abort", .ranks = 3});
}

// Protects: a lost peer becomes an asynchronous error in the given time, and no call after it is enqueued or
// counted.
TEST(Failure, ATimeoutIsAnAsynchronousError) {
  for (const char* end : {"abort", "destroy"})
    run_counted(
        {.scenario = "timeout", .ranks = 3, .argument = end, .environment = {{"ONEHOP_TIMEOUT_S", "1"}}});
}

}  // namespace
}  // namespace onehop::node
