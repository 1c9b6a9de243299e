// Plan files in a job: used where every rank has the same one and it is for this machine, else one line says
// why not.
#include "plugin/plan_file/plan_file.hpp"

#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

const std::string kAllOneShot =
    R"({"up_to": 8388608, "method": "one-shot push", "measured_at": 4096, "us": 2.5, "nccl_us": 6})";
const std::string kAllPull =
    R"({"up_to": 65536, "method": "one-shot pull", "blocks": 2, "workers": 64, "measured_at": 4096, "us": 2.5, "nccl_us": 6},
       {"up_to": 8388608, "method": "one-shot pull", "blocks": 8, "workers": 256, "measured_at": 262144, "us": 9.5, "nccl_us": 16})";

std::string file_of(const Machine& machine, const std::string& ranges, const std::string& islands = "") {
  return R"({"format": 1, "plans": [{"machine": )" + to_json(machine) + R"(, "measured": "by hand", )" +
         (islands.empty() ? "" : R"("islands": ")" + islands + R"(", )") + R"("ranges": [)" + ranges + "]}]}";
}

Job planned(Job job, const std::string& text) {
  if (job.scenario.empty()) job.scenario = "plain";
  if (job.argument.empty()) job.argument = "524288";
  job.environment.emplace("ONEHOP_PLAN", "plan.json");
  job.files["plan.json"] = text;
  return job;
}

/// What these ranks' machine is, as the line about a plan for another one says it.
Machine machine_of(const Job& job) {
  Machine unknown;
  unknown.facts.fill("?");
  const Outcome outcome = run(planned(job, file_of(unknown, kAllOneShot)));
  const std::vector<std::string> lines = outcome.log("is not used");
  EXPECT_EQ(lines.size(), 1u);
  Machine machine;
  for (size_t f = 0; f < kFacts && !lines.empty(); ++f) {
    const std::string before = std::string(" ") + kFactNames[f] + " '?' for '";
    const size_t at = lines[0].find(before);
    EXPECT_NE(at, std::string::npos) << lines[0];
    if (at == std::string::npos) continue;
    machine.facts[f] = lines[0].substr(at + before.size());
    machine.facts[f].resize(machine.facts[f].find('\''));
  }
  return machine;
}

/// Runs a job that must not use the plan, and has one line that says so.
void expect_unused(const Job& job, const std::string& reason, size_t lines = 1) {
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> unused = outcome.log("is not used");
  EXPECT_EQ(unused.size(), lines) << reason;
  for (const std::string& line : unused) {
    EXPECT_EQ(line.rfind("warning: the plan file plan.json is not used: ", 0), 0u) << line;
    EXPECT_NE(line.find(reason), std::string::npos) << line;
    EXPECT_NE(line.find("; guesses are used (ONEHOP_MEASURE=off) instead"), std::string::npos) << line;
  }
  const std::vector<std::string> on = outcome.log("ON for");
  ASSERT_EQ(on.size(), 1u);
  EXPECT_EQ(on[0].find("(plan "), std::string::npos) << on[0];
  EXPECT_NE(on[0].find("one-shot push"), std::string::npos) << on[0];
}

TEST(PlanFile, IsUsedWhereItIsForThisMachine) {
  for (const int ranks : {2, 5}) {
    const Machine machine = machine_of({.ranks = ranks});
    const Outcome outcome = run_counted(planned({.ranks = ranks}, file_of(machine, kAllPull)));
    const std::vector<std::string> on = outcome.log("ON for");
    ASSERT_EQ(on.size(), 1u);
    EXPECT_NE(
        on[0].find("one-shot pull up to 65536 bytes (2.5 us at 4096, NCCL 6.0), one-shot pull up to 524288 "
                   "bytes (9.5 us at 262144, NCCL 16.0) (plan plan.json);"),
        std::string::npos)
        << on[0];
    EXPECT_TRUE(outcome.log("warning: ").empty());
  }
}

// Protects: the geometry of each range gets as far as the launch.
TEST(PlanFile, HasItsGeometryLaunched) {
  const Machine machine = machine_of({});
  Job job = planned({}, file_of(machine, kAllPull));
  job.of[0] = {{"ONEHOP_STANDIN_LAUNCHES", "launches"}};
  const Outcome outcome = run_counted(job);
  const auto found = outcome.files.find("launches");
  ASSERT_NE(found, outcome.files.end());
  for (const char* line : {"\none-shot pull 2 x 64\n", "\none-shot pull 8 x 256\n"})
    EXPECT_NE(found->second.find(line), std::string::npos) << line << found->second;
}

TEST(PlanFile, IsUsedInsteadOfMeasuring) {
  const Environment times = {{"ONEHOP_MEASURE", "quick"}, {"ONEHOP_STANDIN_TIMES", "1"}};
  const Machine machine = machine_of({.environment = {{"ONEHOP_MEASURE", "off"}}});
  EXPECT_EQ(
      run_counted(planned({.environment = times}, file_of(machine, kAllPull))).log("(plan plan.json)").size(),
      1u);
}

TEST(PlanFile, IsUsedByOneThreadOfSeveralGpus) {
  const Job job = {.scenario = "one_thread", .ranks = 1, .argument = "4"};
  const Machine machine = machine_of(job);
  EXPECT_EQ(machine[Fact::kRanks], "4");
  EXPECT_EQ(machine[Fact::kProcesses], "1");
  EXPECT_EQ(run_counted(planned(job, file_of(machine, kAllPull))).log("(plan plan.json)").size(), 1u);
}

// Protects: a link is probed whatever the file says; and the plan is of a kind of staging.
TEST(PlanFile, IsForOneKindOfStaging) {
  const Environment host = {{"ONEHOP_STAGING", "host"}};
  const Machine in_device = machine_of({}), in_host = machine_of({.environment = host});
  EXPECT_EQ(in_device[Fact::kStaging], "device memory");
  EXPECT_EQ(in_host[Fact::kStaging], "host memory");
  EXPECT_EQ(
      run_counted(planned({.environment = host}, file_of(in_host, kAllPull))).log("(plan plan.json)").size(),
      1u);
  const Outcome broken =
      run(planned({.environment = {{"ONEHOP_STANDIN_FAIL", "import"}}}, file_of(in_device, kAllPull)));
  EXPECT_EQ(broken.log("staging 'device memory' for 'host memory'").size(), 1u);
  EXPECT_EQ(broken.log("staging in host memory, ").size(), 1u);
}

TEST(PlanFile, OfAnotherMachineIsNotUsed) {
  const Machine machine = machine_of({});
  for (size_t f = 0; f < kFacts; ++f) {
    Machine other = machine;
    other.facts[f] += "!";
    expect_unused(planned({}, file_of(other, kAllPull)),
                  std::string(kFactNames[f]) + " '" + other.facts[f] + "' for '" + machine.facts[f] + "'");
  }
}

TEST(PlanFile, ThatCannotBeReadIsNotUsed) {
  const std::string good = file_of(machine_of({}), kAllPull);
  expect_unused(planned({.ranks = 3}, good.substr(0, good.size() / 2)), "it is no JSON");
  expect_unused(planned({}, std::string(2 << 20, ' ')), "it has more than 1048576 bytes");
  expect_unused(planned({}, R"({"format": 2, "plans": []})"), "it has a \"format\"");
  expect_unused(planned({}, R"({"format": 1, "plans": []})"), "it has no plans");
  Job none = planned({}, good);
  none.files.clear();
  expect_unused(none, "it cannot be opened: No such file");
}

// Protects: a plan that differs between ranks would hang the job, and so would a rank that measures alone.
TEST(PlanFile, ThatDiffersBetweenRanksIsNotUsed) {
  const std::string good = file_of(machine_of({.ranks = 3}), kAllPull),
                    other = file_of(machine_of({.ranks = 3}), kAllOneShot);
  const auto job_of = [&](int rank, const std::string& text) {
    Job job = planned({.ranks = 3}, good);
    job.files["other.json"] = text;
    job.of[rank] = {{"ONEHOP_PLAN", "other.json"}};
    return job;
  };
  expect_unused(job_of(2, other), "rank 2 has another one");
  expect_unused(job_of(2, good + " "), "rank 2 has another one");
  // The rank that cannot read its own says so, as no other can know why; here under another name.
  const Outcome damaged = run_counted(job_of(1, "{"));
  EXPECT_EQ(damaged.log("the plan file plan.json is not used: rank 1 has none").size(), 1u);
  EXPECT_EQ(damaged.processes[1].log("the plan file other.json is not used: it is no JSON").size(), 1u);
  EXPECT_EQ(damaged.log("is not used").size(), 2u);
  EXPECT_TRUE(damaged.log("(plan ").empty());
  // The same file under two names is the same.
  EXPECT_EQ(run_counted(job_of(1, good)).log("(plan plan.json)").size(), 1u);
  // Not set on one rank, and on the first.
  for (const int rank : {0, 2}) {
    Job job = planned({.ranks = 3}, good);
    job.environment.erase("ONEHOP_PLAN");
    for (int r = 0; r < 3; ++r)
      if (r != rank) job.of[r] = {{"ONEHOP_PLAN", "plan.json"}};
    const Outcome outcome = run_counted(job);
    EXPECT_TRUE(outcome.log("(plan ").empty());
    EXPECT_EQ(outcome.log("ON for").size(), 1u);
  }
}

constexpr char kAllIslands[] =
    R"({"up_to": 8388608, "method": "islands", "measured_at": 4096, "us": 2.5, "nccl_us": 6})";

// Protects: a method without memory or links that were probed.
TEST(PlanFile, WithAMethodThatCannotServeIsNotUsed) {
  expect_unused(planned({}, file_of(machine_of({}), kAllIslands, "0/1")),
                "islands cannot serve this communicator");
}

// Protects: the kernels' islands, which were others while the memory was laid out.
TEST(PlanFile, BringsItsIslands) {
  const Machine machine = machine_of({.ranks = 4});
  Job job = planned({.ranks = 4}, file_of(machine, kAllIslands, "0,2/1,3"));
  job.of[0] = {{"ONEHOP_STANDIN_LAUNCHES", "launches"}};
  const Outcome outcome = run_counted(job);
  EXPECT_EQ(
      outcome.log("islands up to 524288 bytes (0,2/1,3) (2.5 us at 4096, NCCL 6.0) (plan plan.json)").size(),
      1u);
  const auto found = outcome.files.find("launches");
  ASSERT_NE(found, outcome.files.end());
  EXPECT_NE(found->second.find("\nislands 0 x 0 0 1 0 1\n"), std::string::npos) << found->second;
  expect_unused(planned({.ranks = 4, .environment = {{"ONEHOP_ISLANDS", "0-1/2-3"}}},
                        file_of(machine, kAllIslands, "0,2/1,3")),
                "its islands 0,2/1,3 are not those of ONEHOP_ISLANDS");
}

TEST(PlanFile, ThatLeavesEverythingToNcclIsOff) {
  const std::string nccl = R"({"up_to": 65536, "method": "NCCL", "measured_at": 4096, "nccl_us": 6})";
  const Outcome outcome = run_counted(planned({.argument = "declined"}, file_of(machine_of({}), nccl)));
  EXPECT_EQ(
      outcome.log("OFF for a communicator of 2 ranks: the plan file plan.json leaves every call to NCCL")
          .size(),
      1u);
}

TEST(PlanFile, GivesWayToANamedMethod) {
  const Outcome outcome =
      run_counted(planned({.environment = {{"ONEHOP_ALGO", "oneshot"}}}, file_of(machine_of({}), kAllPull)));
  EXPECT_EQ(outcome.log("is not used: a method is named; ONEHOP_ALGO decides instead").size(), 1u);
  EXPECT_EQ(outcome.log("ON for a communicator of 2 ranks: one-shot push up to 524288 bytes;").size(), 1u);
}

}  // namespace
}  // namespace onehop::node
