// How the plugin gets into a process, and that it is a good guest there.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

// Protects: both ways in, and both at once: a function must not be redirected twice.
TEST(Loading, ByPreload) {
  for (const Load load : {Load::kPreload, Load::kBoth}) {
    const Outcome outcome = run_counted({.scenario = "plain", .argument = "524288", .load = load});
    EXPECT_EQ(outcome.log("ON for").size(), 1u);
  }
}

TEST(Loading, OneWayOnOneRankAndTheOtherOnTheNext) {
  const Outcome outcome =
      run_counted({.scenario = "plain", .argument = "524288", .load_of = {{1, Load::kPreload}}});
  EXPECT_EQ(outcome.log("ON for").size(), 1u);
}

TEST(Loading, ByTheOtherPluginVariables) {
  for (const char* variable : {"NCCL_ENV_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"})
    run_counted(
        {.scenario = "plain", .argument = "524288", .environment = {{variable, PLUGIN}}, .load = Load::kNot});
}

// Protects: with onehop on some ranks only nobody waits for ever and no sum is silently wrong. (The stand-in
// tells that the collectives differ; NCCL would hang, and onehop says so:
// Slow.ALateRankIsWaitedForWithAWarning.)
TEST(Loading, OnSomeRanksOnlyIsAnError) {
  const Outcome outcome = run({.scenario = "first_call", .ranks = 3, .load_of = {{1, Load::kNot}}});
  for (const Process& process : outcome.processes)
    EXPECT_NE(process.output.find("an error\n"), std::string::npos) << process.output << process.errors;
}

// Protects: the environment that the job's own children get.
TEST(Guest, LeavesTheEnvironmentAsItWas) {
  Job job = {.scenario = "environment", .environment = {{"ONEHOP_STATS_FILE", "stats"}}};
  const auto variables = [](const Process& process) {
    const std::string name = "NCCL_NET_PLUGIN=";
    std::string text = process.output.substr(0, process.output.find("expected"));
    if (const size_t at = text.find(name); at != std::string::npos)
      text.erase(at, text.find('\n', at) + 1 - at);
    return text;
  };
  for (const bool configured : {false, true}) {
    if (configured) {
      job.environment["NCCL_CONF_FILE"] = "nccl.conf";
      job.files["nccl.conf"] = "NCCL_ALGO=^NVLS\nNCCL_PROTO=LL\n";
    }
    job.load = Load::kNetPlugin;
    const Outcome with = run(job);
    job.load = Load::kNot;
    const Outcome without = run(job);
    EXPECT_FALSE(with.log("communicator of 2 ranks").empty());
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(variables(with.processes[r]), variables(without.processes[r]));
      EXPECT_EQ(variables(with.processes[r]).find("NCCL_PROTO=LL") != std::string::npos, configured);
    }
  }
}

// Protects: programs whose output is read by another program.
TEST(Guest, WritesNothingToStandardOutput) {
  const Job job = {.scenario = "family",
                   .ranks = 3,
                   .environment = {{"ONEHOP_LOG", "trace"}, {"ONEHOP_STATS", "1"}, {"ONEHOP_ALGOO", "x"}}};
  const Outcome outcome = run_counted(job);
  for (const Process& process : outcome.processes) {
    EXPECT_EQ(process.output.rfind("expected ", 0), 0u) << process.output;
    EXPECT_EQ(process.output.find('\n') + 6, process.output.size()) << process.output;
    EXPECT_EQ(process.log().size(),
              static_cast<size_t>(std::count(process.errors.begin(), process.errors.end(), '\n')))
        << "every line is marked as onehop's: " << process.errors;
  }
}

// Protects: a data loader's children. The device memory is not theirs, and the statistics are their parent's.
TEST(Guest, IsOffInAForkedChild) {
  run_counted({.scenario = "forks"});
}

// Protects: the user who forgot a rank is told.
TEST(Slow, ALateRankIsWaitedForWithAWarning) {
  const Outcome outcome = run_counted({.scenario = "late", .ranks = 3, .argument = "21"});
  EXPECT_EQ(outcome.log("has waited 20 s for the other ranks").size(), 2u);
  EXPECT_TRUE(outcome.processes[2].log("has waited").empty());
}

}  // namespace
}  // namespace onehop::node
