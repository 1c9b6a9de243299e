// Links that are advertised and do not work: the probe finds them before any of the job's data goes there,
// every rank draws the same conclusion, and results are right whatever was found.
#include <gtest/gtest.h>

#include <thread>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

/// One line for each of the two communicators, whichever the verdict.
std::vector<std::string> verdicts(Job job) {
  job.scenario = "two_over_broken_links";
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> lines = outcome.log(" for a communicator");
  EXPECT_EQ(lines.size(), 2u);
  EXPECT_EQ(outcome.processes[0].log(" for a communicator"), lines);
  return lines.size() == 2 ? lines : std::vector<std::string>(2);
}

void expect_parts(const std::string& line, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
}

const std::string kFailed = " has a link that failed: in the probe, words ",
                  kMissing = "did not arrive within 4000 ms", kChanged = " arrived changed",
                  kEarlier = "an earlier communicator of one of these processes found a link that failed";

Environment in_device(const char* fault) {
  return {{"ONEHOP_STANDIN_FAULT", fault}};
}
Environment in_both(const char* device_fault, const char* host_fault) {
  return {{"ONEHOP_STANDIN_FAULT", device_fault}, {"ONEHOP_STANDIN_HOST_FAULT", host_fault}};
}

/// A fault of device memory, of one rank: all go on in host memory, and do not try again.
void expect_host_memory(Job job, const std::string& what) {
  if (job.argument.empty()) job.argument = "taken";
  const std::vector<std::string> on = verdicts(job);
  expect_parts(on[0], {"ON for", "staging in host memory, ", "because not staging in device memory: rank ",
                       kFailed, what});
  expect_parts(on[1],
               {"ON for", "staging in host memory, ", "because not staging in device memory: " + kEarlier});
}

TEST(Probe, FindsWordsThatAreDropped) {
  expect_host_memory({.of = {{1, in_device("drop")}}}, kMissing);
}

TEST(Probe, FindsWordsThatComeInPart) {
  expect_host_memory({.ranks = 4, .of = {{3, in_device("half")}}}, kMissing);
}

TEST(Probe, FindsWordsThatLandInTheWritersOwnMemory) {
  expect_host_memory({.ranks = 4, .of = {{1, in_device("mirror")}}}, kMissing);
}

// Protects: memory that is given up, and words that come there when the job is at work elsewhere.
TEST(Probe, FindsWordsThatAreLateAndNothingSuffersWhenTheyCome) {
  expect_host_memory({.argument = "taken 3000", .of = {{1, in_device("delay")}}}, kMissing);
}

/// Zeros are numbers, but no flags.
TEST(Probe, FindsZerosInPlaceOfWords) {
  expect_host_memory({.of = {{1, in_device("zero")}}}, kMissing);
}

TEST(Probe, FindsWordsThatArriveChanged) {
  expect_host_memory({.of = {{0, in_device("flip")}}}, "from all ranks" + kChanged);
  expect_host_memory({.ranks = 4, .of = {{2, in_device("flip")}}}, "from all ranks" + kChanged);
}

/// From one rank to one other, and not back.
TEST(Probe, FindsOneDirectionOfOnePair) {
  for (const char* which : {"flip:1", "flip:3"})
    expect_host_memory({.ranks = 4, .of = {{1, in_device(which)}}}, "from all ranks" + kChanged);
  expect_host_memory({.ranks = 4, .of = {{2, in_device("drop:1")}}}, kMissing);
}

/// There is no such memory: nothing is found where nothing is wrong, and device memory stays.
TEST(Probe, FindsNothingWhereNothingIsTouched) {
  const std::vector<std::string> on =
      verdicts({.ranks = 4, .argument = "taken", .of = {{1, in_both("drop:99", "drop:99")}}});
  for (const std::string& line : on) {
    expect_parts(line, {"ON for", "staging in device memory, "});
    EXPECT_EQ(line.find("because"), std::string::npos) << line;
  }
}

// Protects: a node on which nothing works. NCCL serves, with both reasons, and in time.
TEST(Probe, OffWhereHostMemoryIsBrokenToo) {
  struct Row {
    int ranks;
    std::map<int, Environment> of;
    std::string device, host;
  };
  // Whoever misses nothing runs ahead, and may find words missing or changed later: there either will do.
  const Row rows[] = {
      {2, {{0, in_both("drop", "drop")}}, "", kMissing},
      {2, {{1, in_both("flip", "mirror")}}, kChanged, ""},
      {4, {{1, in_device("flip:2")}, {3, in_both("flip:99", "zero:2")}}, kChanged, ""},
  };
  const auto check = [](const Row& row) {
    const std::vector<std::string> off =
        verdicts({.ranks = row.ranks, .argument = "declined", .of = row.of, .deadline_s = 40});
    const size_t host = off[0].find("; staging in host memory: rank ");
    ASSERT_NE(host, std::string::npos) << off[0];
    expect_parts(off[0].substr(0, host), {"OFF for", "staging in device memory: rank ", kFailed, row.device});
    expect_parts(off[0].substr(host), {kFailed, row.host});
    expect_parts(off[1], {"OFF for", "staging in device memory: " + kEarlier,
                          "; staging in host memory: " + kEarlier});
  };
  // At the same time: they wait more than they work.
  std::vector<std::thread> jobs;
  for (const Row& row : rows) jobs.emplace_back(check, row);
  for (std::thread& job : jobs) job.join();
}

}  // namespace
}  // namespace onehop::node
