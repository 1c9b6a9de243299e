// Loading the plugin makes no CUDA call: frameworks fork their workers before they touch CUDA, and a process
// that has initialised CUDA cannot. Shown with a libcuda that records what is called.
#include <unistd.h>

#include "test/object/jobs.hpp"
#include "test/object/nccl_library.hpp"

namespace onehop::test {
namespace {

class Recorded : public testing::Test {
 protected:
  /// The recording libcuda lies beside the programs.
  Environment with(Environment environment, const std::string& more_libraries = "") const {
    environment["LD_LIBRARY_PATH"] = PROGRAMS + (more_libraries.empty() ? "" : ":" + more_libraries);
    environment["ONEHOP_TEST_RECORD"] = record_;
    return environment;
  }
  std::string recorded() const { return read_file(record_); }

  Folder folder_;
  std::string record_ = folder_ / "record";
};

TEST_F(Recorded, TheRecordingLibraryNoticesACall) {
  if (access(program("cuda_caller").c_str(), X_OK) != 0) GTEST_SKIP() << "built without CUDA";
  EXPECT_EQ(run({program("cuda_caller")}, with({})).status, 0);
  EXPECT_EQ(recorded().find("loaded\n"), 0u) << recorded();
  EXPECT_GT(lines_with(recorded(), "cu"), 0) << recorded();
}

TEST_F(Recorded, LoadingMakesNoCall) {
  EXPECT_EQ(run({program("alone"), PLUGIN}, with({})).status, 0);
  const Outcome outcome =
      run_script({"spawn", "open:" + fake("fake_nccl_one"), "call:0", "fork", "call:0", "spawn"},
                 with({{"LD_PRELOAD", PLUGIN}}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("0 ncclAllReduce 100 +1"), std::string::npos) << outcome.out;
  EXPECT_EQ(recorded(), "");
}

/// The real library may load libcuda itself: with the plugin no call more.
TEST_F(Recorded, TheRealLibraryMakesNoCallMoreWithThePlugin) {
  const NcclLibrary nccl;
  if (!nccl.found()) GTEST_SKIP() << NcclLibrary::kReason;
  const std::vector<std::string> steps = {
      "open:" + nccl.path(), "unique:0", "call:0", "fork", "call:0", "spawn"};
  const Outcome stock = run_script(steps, with({}, nccl.folder()));
  ASSERT_EQ(stock.status, 0) << stock.err;
  const std::string stock_record = recorded();
  for (const char* variable : {"LD_PRELOAD", "NCCL_ENV_PLUGIN"}) {
    unlink(record_.c_str());
    const Outcome outcome = run_script(steps, with({{variable, PLUGIN}}, nccl.folder()));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("0 ncclAllReduce 4 +1"), std::string::npos) << variable << ": " << outcome.out;
    EXPECT_EQ(recorded(), stock_record) << variable;
  }
}

/// A forked child has the plugin's code but must not use it: its calls go to NCCL, and the parent notices
/// nothing.
TEST(Forked, TheChildsCallsGoToNccl) {
  const Outcome child = run_script({"open:" + fake("fake_nccl_one"), "plugin:" PLUGIN, "fork", "call:0"});
  EXPECT_EQ(child.status, 0) << child.err;
  const std::vector<CallLine> calls = calls_of(child);
  ASSERT_EQ(calls.size(), 8u) << child.out;
  EXPECT_EQ(calls[0].result, 100);
  EXPECT_EQ(calls[0].seen, 1);
}

TEST(Forked, OnlyTheParentReportsAtExit) {
  const Outcome outcome =
      run_script({"open:" + fake("fake_nccl_one"), "plugin:" PLUGIN, "call:0", "fork", "call:0"},
                 {{"ONEHOP_STATS", "1"}});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.err, "statistics: 0 ncclAllReduce calls taken, 3 passed"), 1) << outcome.err;
  EXPECT_EQ(lines_with(outcome.err, "statistics:"), 1) << outcome.err;
}

}  // namespace
}  // namespace onehop::test
