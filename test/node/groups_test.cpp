#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

// Protects: launching at the outermost end and not before; set-up of several communicators in one group.
TEST(Groups, LaunchAtTheOutermostEnd) {
  run_counted({.scenario = "groups", .ranks = 3});
}

TEST(Groups, MixTakenAndPassedCallsAndMessages) {
  run_counted({.scenario = "mixed_groups", .ranks = 3, .environment = {{"ONEHOP_MAX_BYTES", "64K"}}});
}

// Protects: collectives before messages. The other way round this hangs.
TEST(Groups, MayDifferBetweenRanks) {
  run_counted({.scenario = "uneven_groups", .ranks = 3});
}

// Protects: that a simulated group neither launches nor stays queued.
TEST(Groups, SimulateEndLaunchesNothing) {
  run_counted({.scenario = "simulate"});
}

// Protects: a depth below zero would make the next group launch inside itself, or never.
TEST(Groups, AnEndWithoutAStartLeavesTheDepthRight) {
  run_counted({.scenario = "unbalanced_end"});
}

// Protects: a group that NCCL drops from being half done.
TEST(Groups, ADroppedGroupLaunchesNothing) {
  run_counted({.scenario = "dropped_group"});
}

// Protects: set-up and launches of all GPUs of a thread together. One after the other they wait for each
// other.
TEST(SeveralGpus, OneThread) {
  for (const char* gpus : {"2", "3", "8"})
    run_counted({.scenario = "one_thread", .ranks = 1, .argument = gpus});
}

// Protects: groups per thread, set-up on several threads at once.
TEST(SeveralGpus, AThreadEach) {
  for (const char* gpus : {"2", "5"}) run_counted({.scenario = "threads", .ranks = 1, .argument = gpus});
}

// Protects: peers by pointer and peers by handle in one communicator.
TEST(SeveralGpus, TwoInEachProcess) {
  run_counted({.scenario = "two_each", .ranks = 2});
  run_counted({.scenario = "two_each", .ranks = 3});
}

// Protects: NCCL's own answers to bad arguments, alone, in groups, before set-up and after it.
TEST(Arguments, AreAnsweredAsWithoutOnehop) {
  const Outcome with = run({.scenario = "arguments"}),
                without = run({.scenario = "arguments", .load = Load::kNot});
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(with.processes[r].output.substr(0, with.processes[r].output.find("expected")),
              without.processes[r].output.substr(0, without.processes[r].output.find("expected")));
    EXPECT_EQ(with.processes[r].counted()["taken"], 1u) << "the good call";
  }
}

}  // namespace
}  // namespace onehop::node
