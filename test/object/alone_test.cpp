// The object in a process that has nothing to do with NCCL.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "test/object/jobs.hpp"

namespace onehop::test {
namespace {

void expect_silence(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
}

TEST(Alone, OpensWithoutCudaAndNcclAndLeavesNoTrace) {
  expect_silence(run({program("alone"), PLUGIN}, {}));
}

/// Settings that write something where there is an NCCL, and one that is wrong: this process has none.
TEST(Alone, SaysNothingWhereThereIsNoNccl) {
  const Folder folder;
  const Environment environment = {{"ONEHOP_STATS", "1"},
                                   {"ONEHOP_STATS_FILE", folder / "statistics"},
                                   {"ONEHOP_ALGO", "1-stage"},
                                   {"ONEHOP_LOG", "trace"},
                                   {"ONEHOP_UNKNOWN", "1"}};
  expect_silence(run({program("alone"), PLUGIN}, environment));
  EXPECT_EQ(read_file(folder / "statistics"), "");
}

/// A program with more rights than the user who starts it: that user must not choose what it writes to.
TEST(Alone, WritesNoFileInASetUserIdProgram) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a program away";
  const Folder folder;
  constexpr uid_t kUser = 4711;
  const std::string copy = folder / "alone", log = folder / "log";
  std::filesystem::copy_file(program("alone"), copy);
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  ASSERT_EQ(chown(copy.c_str(), kUser, kUser), 0);
  run({copy, PLUGIN}, {{"ONEHOP_LOG_FILE", log}});
  EXPECT_TRUE(std::filesystem::remove(log)) << "the control: it is made";
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  EXPECT_EQ(run({copy, PLUGIN}, {{"ONEHOP_LOG_FILE", log}}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(log));
}

/// LD_PRELOAD reaches every process of a job, shells and all.
TEST(Alone, EveryProgramRunsAsBeforeWithItPreloaded) {
  const Outcome outcome = run({"/bin/sh", "-c", "echo a; cat /dev/null; (exit 7)"}, {{"LD_PRELOAD", PLUGIN}});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(outcome.out, "a\n");
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace onehop::test
