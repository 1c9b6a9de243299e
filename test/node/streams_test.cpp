// The operations of a communicator run one after another, whatever streams and graphs they are in.
#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

// Protects: the wait where the stream changes.
TEST(Streams, TwoInTurnKeepTheOrderOfTheCalls) {
  run_counted({.scenario = "two_streams", .ranks = 3});
}

// Protects: the order of onehop's calls and NCCL's, which wait for each other only if onehop makes them.
TEST(Streams, TakenAndPassedCallsKeepTheirOrder) {
  run_counted({.scenario = "taken_and_passed", .ranks = 3});
}

// Protects: a job that waits for one stream of a group only, as NCCL allows.
TEST(Streams, OfOneGroupAreJoined) {
  run_counted({.scenario = "two_streams_in_a_group"});
}

// Protects: nothing of a stream is used after the program may have destroyed it.
TEST(Streams, MayBeDestroyedRightAfterACall) {
  run_counted({.scenario = "short_streams"});
}

// Protects: edges within a capture, external events between launches, epochs that advance without the host.
TEST(Graphs, OfAnyLengthMixWithEagerCalls) {
  run_counted({.scenario = "graphs", .ranks = 3, .environment = {{"ONEHOP_MAX_BYTES", "64K"}}});
}

TEST(Graphs, MayGoOverTwoStreams) {
  run_counted({.scenario = "forked_capture", .ranks = 3});
}

TEST(Graphs, OfOneCommunicatorRunInTheOrderOfTheirLaunches) {
  run_counted({.scenario = "two_graphs", .ranks = 3});
}

// Protects: set-up on a private stream in relaxed mode.
TEST(Graphs, MayHoldTheFirstCall) {
  run_counted({.scenario = "first_in_capture", .ranks = 3});
  for (const char* mode : {"global", "thread", "relaxed"})
    run_counted({.scenario = "first_in_capture_of_mode", .argument = mode});
}

TEST(Enable, IsFollowedBetweenCalls) {
  run_counted({.scenario = "enable", .ranks = 3});
}

}  // namespace
}  // namespace onehop::node
