// Libraries that define NCCL's functions without being NCCL: which are taken over, which are left as they
// were, and that each call goes back to the library that it came through.
#include "test/object/jobs.hpp"

namespace onehop::test {
namespace {

/// What calls.h gets from a fake library whose FAKE_ID is `id`.
std::vector<int> results_of(int id) {
  return {id, id + 1, id + 4, id + 2, id, id + 3, id + 3, id};
}

/// The calls of library `number`: the library's own results, and `seen` for each ncclAllReduce. The fakes
/// have a pncclAllReduce that is another function, which onehop leaves alone.
void expect_calls(const Outcome& outcome, int number, int id, int seen) {
  std::vector<int> results, counts;
  for (const CallLine& line : calls_of(outcome)) {
    if (line.call.find(std::to_string(number) + " ") != 0) continue;
    results.push_back(line.result);
    const bool all_reduce = line.call.find(" ncclAllReduce") != std::string::npos;
    EXPECT_EQ(line.seen, all_reduce ? seen : 0) << line.call << "\n" << outcome.out;
  }
  EXPECT_EQ(results, results_of(id)) << "library " << number << "\n" << outcome.out;
}

bool says(const Outcome& outcome, const std::string& line) {
  return lines_with("\n" + outcome.out, line) == 1;
}

TEST(Fakes, EachCallGoesBackToItsOwnLibrary) {
  const std::string one = "open:" + fake("fake_nccl_one"), two = "open:" + fake("fake_nccl_two");
  // The plugin before, between and behind them, and preloaded.
  const std::vector<std::vector<std::string>> orders = {
      {"plugin:" PLUGIN, one, two}, {one, "plugin:" PLUGIN, two}, {one, two, "plugin:" PLUGIN}};
  for (std::vector<std::string> steps : orders) {
    steps.insert(steps.end(), {"images", "call:0", "call:1", "bytes:0"});
    const Outcome outcome = run_script(steps);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(says(outcome, "images 2")) << outcome.out;
    expect_calls(outcome, 0, 100, 1);
    expect_calls(outcome, 1, 200, 1);
    EXPECT_EQ(outcome.err, "");
  }
  const Outcome preloaded = run_script({one, two, "images", "call:0", "call:1"}, {{"LD_PRELOAD", PLUGIN}});
  EXPECT_TRUE(says(preloaded, "images 2")) << preloaded.out;
  expect_calls(preloaded, 0, 100, 1);
  expect_calls(preloaded, 1, 200, 1);
}

/// NCCL linked statically into a framework's own library, which exports it.
TEST(Fakes, NcclInsideAnotherLibraryIsTakenOver) {
  const std::string open = "open:" + fake("framework");
  for (const auto& steps : {std::vector<std::string>{open, "plugin:" PLUGIN}, {"plugin:" PLUGIN, open}}) {
    std::vector<std::string> all = steps;
    all.insert(all.end(), {"images", "call:0"});
    const Outcome outcome = run_script(all);
    EXPECT_TRUE(says(outcome, "images 1")) << outcome.out;
    expect_calls(outcome, 0, 300, 1);
  }
}

/// NCCL linked statically into the job's program. Only what it exports can be found.
TEST(Fakes, NcclInsideTheProgramIsTakenOverIfItIsExported) {
  for (const bool exported : {true, false}) {
    const Outcome outcome = run({program(exported ? "static_job" : "static_job_hidden")},
                                {{"LD_PRELOAD", PLUGIN}, {"ONEHOP_TEST_PLUGIN", PLUGIN}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const std::vector<CallLine> calls = calls_of(outcome);
    ASSERT_EQ(calls.size(), 13u) << outcome.out;
    for (const CallLine& line : calls) {
      const bool all_reduce = line.call.find("ncclAllReduce") != std::string::npos &&
                              line.call.find("pncclAllReduce") == std::string::npos;
      if (all_reduce) {
        EXPECT_EQ(line.result, 30) << line.call;
      }
      if (line.seen >= 0) {
        EXPECT_EQ(line.seen, all_reduce && exported ? 1 : 0) << line.call;
      }
    }
    EXPECT_EQ(calls.back().result, 33) << outcome.out;
  }
}

/// A library that comes and goes: what was written for the first may be unmapped with it, and its address
/// used again.
TEST(Fakes, AReopenedLibraryIsTakenOverAgain) {
  const std::string open = "open:" + fake("fake_nccl_one");
  const Outcome outcome = run_script({"plugin:" PLUGIN, open, "call:0", "close:0", open, "call:1", "close:1",
                                      "open:" + fake("fake_nccl_two"), "call:2", open, "call:3"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  expect_calls(outcome, 0, 100, 1);
  expect_calls(outcome, 1, 100, 1);
  expect_calls(outcome, 2, 200, 1);
  expect_calls(outcome, 3, 100, 1);
}

/// The addresses were taken before, and the entries really change: otherwise the tests of untouched bytes
/// prove nothing.
TEST(Fakes, TheEntriesOfALibraryThatIsTakenOverChange) {
  const Outcome outcome =
      run_script({"open:" + fake("fake_nccl_one"), "bytes:0", "plugin:" PLUGIN, "bytes:0"});
  EXPECT_TRUE(says(outcome, "0 bytes same")) << outcome.out;
  EXPECT_TRUE(says(outcome, "0 bytes changed")) << outcome.out;
}

struct Refusal {
  const char* library;
  int id;
  const char* reason;
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.library << ": " << refusal.reason;
}

class Refused : public testing::TestWithParam<Refusal> {};

/// All or nothing, one line that says why, and the library as it was.
TEST_P(Refused, IsLeftAsItWasAndSaidOnce) {
  const std::string path = fake(GetParam().library), open = "open:" + path;
  const std::vector<std::vector<std::string>> orders = {{open, "plugin:" PLUGIN}, {"plugin:" PLUGIN, open}};
  for (std::vector<std::string> steps : orders) {
    // What is loaded later makes onehop look at everything again.
    steps.insert(steps.end(), {"call:0", "bytes:0", "open:" + fake("fake_nccl_one"), "open:libm.so.6",
                               "call:1", "images"});
    const Outcome outcome = run_script(steps);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_calls(outcome, 0, GetParam().id, 0);
    EXPECT_TRUE(says(outcome, "0 bytes same")) << outcome.out;
    EXPECT_EQ(lines_with(outcome.err, "onehop"), 1) << outcome.err;
    EXPECT_EQ(lines_with(outcome.err, "OFF for " + path), 1) << outcome.err;
    EXPECT_EQ(lines_with(outcome.err, GetParam().reason), 1) << outcome.err;
    // It does not stand in the way of another one.
    expect_calls(outcome, 1, 100, 1);
    EXPECT_TRUE(says(outcome, "images 1")) << outcome.out;
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, Refused,
                         testing::Values(Refusal{"branching", 10, "ncclGroupEnd in"},
                                         Refusal{"branching", 10,
                                                 "goes to +0x2, within the bytes to overwrite"},
                                         Refusal{"partial", 400, "it has no ncclAllGather"}),
                         [](const auto& parameter) {
                           return std::string(parameter.param.library) + std::to_string(parameter.index);
                         });

/// A bad setting is one line, once, however many libraries come; the calls go to NCCL all the same.
TEST(Fakes, ABadSettingIsSaidOnceAndCallsPass) {
  const Outcome outcome = run_script(
      {"plugin:" PLUGIN, "open:" + fake("fake_nccl_one"), "open:" + fake("fake_nccl_two"), "call:0"},
      {{"ONEHOP_ALGO", "1-stage"}});
  EXPECT_EQ(lines_with(outcome.err, "ONEHOP_ALGO=1-stage"), 1) << outcome.err;
  EXPECT_EQ(lines_with(outcome.err, "auto, oneshot (or 1stage)"), 1) << outcome.err;
  expect_calls(outcome, 0, 100, 1);
}

/// More libraries than a process can sensibly hold is covered by one line, too: here only that eight fit is
/// relied upon.
TEST(Fakes, TheSameLibraryOpenedTwiceIsOne) {
  const std::string open = "open:" + fake("fake_nccl_one");
  const Outcome outcome = run_script({"plugin:" PLUGIN, open, open, "images", "call:1"});
  EXPECT_TRUE(says(outcome, "images 1")) << outcome.out;
  expect_calls(outcome, 1, 100, 1);
}

}  // namespace
}  // namespace onehop::test
