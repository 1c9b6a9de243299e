// The ONEHOP_ variables, as a job meets them.
#include <gtest/gtest.h>

#include "onehop/onehop.h"
#include "test/node/job.hpp"

namespace onehop::node {
namespace {

/// A job whose communicator must be declined: it runs right on NCCL, and one line says why.
Outcome run_declined(Job job, const std::string& reason) {
  job.scenario = "plain";
  if (job.argument.empty()) job.argument = "declined";
  Outcome outcome = run_counted(job);
  const std::vector<std::string> off = outcome.log("OFF for a communicator");
  EXPECT_EQ(off.size(), 1u);
  EXPECT_NE((off.empty() ? "" : off[0]).find(reason), std::string::npos) << (off.empty() ? "" : off[0]);
  EXPECT_TRUE(outcome.log("ON for").empty());
  return outcome;
}

// Protects: nothing is guessed from a value that is not allowed, and the user is told once per process.
TEST(Settings, ABadValueIsOneErrorLineAndStockNccl) {
  const Outcome outcome =
      run_declined({.ranks = 3, .environment = {{"ONEHOP_ALGO", "1-stage"}}}, "ONEHOP_ALGO=1-stage");
  for (const Process& process : outcome.processes) {
    const std::vector<std::string> errors = process.log("error: ");
    ASSERT_EQ(errors.size(), 1u) << process.errors;
    for (const char* part : {"ONEHOP_ALGO", "1-stage", "oneshot", "1stage", "auto"})
      EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
  }
}

// Protects: the decision is everybody's. If the others took calls, they would wait for this rank for ever.
TEST(Settings, ABadValueOnOneRankMakesAllDecline) {
  const Outcome outcome = run_declined({.ranks = 3, .of = {{1, {{"ONEHOP_ALGO", "1-stage"}}}}}, "(rank 1)");
  EXPECT_EQ(outcome.log("error: ").size(), 1u);
}

TEST(Settings, OfferNothingWhereTheyDiffer) {
  run_declined({.ranks = 3, .of = {{2, {{"ONEHOP_MAX_BYTES", "32K"}}}}},
               "ONEHOP_ settings differ between rank 0 and rank 2");
}

TEST(Settings, DoNotDifferWhereTheyMeanTheSame) {
  const Outcome outcome = run_counted(
      {.scenario = "plain",
       .argument = "524288",
       .of = {{1, {{"ONEHOP_MAX_BYTES", "524288"}, {"ONEHOP_LOG", "warn"}, {"ONEHOP_STATS", "1"}}}}});
  EXPECT_EQ(outcome.log("ON for a communicator of 2 ranks").size(), 1u);
}

TEST(Settings, DisabledOnOneRankMakesAllDecline) {
  run_declined({.of = {{1, {{"ONEHOP_ENABLE", "0"}}}}}, "ONEHOP_ENABLE=0 (rank 1)");
  run_declined({.environment = {{"ONEHOP_ENABLE", "0"}}}, "ONEHOP_ENABLE=0 (rank 0)");
}

TEST(Settings, AnUnknownVariableIsAWarningWithTheNearestName) {
  const Outcome outcome =
      run_counted({.scenario = "plain", .argument = "524288", .environment = {{"ONEHOP_ALGOO", "oneshot"}}});
  for (const Process& process : outcome.processes) {
    const std::vector<std::string> warnings = process.log("warning: ");
    ASSERT_EQ(warnings.size(), 1u) << process.errors;
    EXPECT_NE(warnings[0].find("ONEHOP_ALGOO"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("did you mean ONEHOP_ALGO?"), std::string::npos) << warnings[0];
  }
}

// Protects: the limit, exactly. The scenario calls with powers of four of words.
TEST(Settings, MaxBytesIsTheLargestCallThatIsTaken) {
  run_counted({.scenario = "plain", .argument = "1024", .environment = {{"ONEHOP_MAX_BYTES", "1K"}}});
  run_counted({.scenario = "plain", .argument = "1023", .environment = {{"ONEHOP_MAX_BYTES", "1023"}}});
  run_counted({.scenario = "plain", .argument = "524288"});
  run_counted({.scenario = "plain", .argument = "1048576", .environment = {{"ONEHOP_MAX_BYTES", "1M"}}});
  run_declined({.environment = {{"ONEHOP_MAX_BYTES", "0"}}}, "ONEHOP_MAX_BYTES=0");
}

TEST(Log, OffIsSilent) {
  for (const char* algo : {"auto", "1-stage"}) {
    const Outcome outcome =
        run({.scenario = "plain",
             .argument = "524288",
             .environment = {{"ONEHOP_LOG", "off"}, {"ONEHOP_STATS", "1"}, {"ONEHOP_ALGO", algo}}});
    for (const Process& process : outcome.processes) EXPECT_EQ(process.errors, "");
  }
}

TEST(Log, GoesToAFilePerProcess) {
  const Outcome outcome =
      run_counted({.scenario = "plain",
                   .argument = "524288",
                   .environment = {{"ONEHOP_LOG_FILE", "log.%p"}, {"ONEHOP_STATS", "1"}}});
  size_t files = 0, on = 0;
  for (const auto& [name, text] : outcome.files) {
    if (name.rfind("log.", 0) != 0) continue;
    ++files;
    EXPECT_NE(text.find("onehop " ONEHOP_VERSION " " + name.substr(4) + ": "), std::string::npos)
        << name << ": " << text;
    on += text.find("ON for") != std::string::npos;
    EXPECT_NE(text.find("9 ncclAllReduce calls taken, 1 passed"), std::string::npos) << text;
  }
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(on, 1u);
  for (const Process& process : outcome.processes) EXPECT_EQ(process.errors, "");
}

struct Switch {
  const char *name, *value;
  const char* reason = nullptr;  ///< to stay off, if it is one
  const char* staging = "device memory";
};

class NcclSwitches : public testing::TestWithParam<Switch> {};
INSTANTIATE_TEST_SUITE_P(All, NcclSwitches,
                         testing::Values(Switch{"NCCL_ALGO", "allreduce:tree",
                                                "NCCL_ALGO=allreduce:tree pins"},
                                         Switch{"NCCL_ALGO", "^NVLS"}, Switch{"NCCL_ALGO", "bcast:ring"},
                                         Switch{"NCCL_PROTO", "LL", "NCCL_PROTO=LL pins"},
                                         Switch{"NCCL_P2P_DISABLE", "1", nullptr, "host memory"},
                                         Switch{"NCCL_P2P_LEVEL", "LOC", nullptr, "host memory"},
                                         Switch{"NCCL_P2P_LEVEL", "SYS"}, Switch{"NCCL_P2P_DISABLE", "0"}));

// Protects: a user who pinned NCCL's algorithm, or keeps it from peer access, gets that, wherever it is
// written.
TEST_P(NcclSwitches, AreFollowedFromTheEnvironmentAndFromTheConfigurationFile) {
  const auto [name, value, reason, staging] = GetParam();
  const std::string line = std::string(name) + "=" + value + "\n";
  const Job by_variable = {.scenario = "plain", .argument = "524288", .environment = {{name, value}}},
            by_file = {.scenario = "plain",
                       .argument = "524288",
                       .environment = {{"NCCL_CONF_FILE", "nccl.conf"}},
                       .files = {{"nccl.conf", line}}};
  for (const Job& job : {by_variable, by_file}) {
    if (reason != nullptr)
      run_declined(job.files.empty() ? Job{.environment = job.environment}
                                     : Job{.environment = job.environment, .files = job.files},
                   reason);
    else
      EXPECT_EQ(run_counted(job).log(std::string("staging in ") + staging + ",").size(), 1u);
  }
}

}  // namespace
}  // namespace onehop::node
