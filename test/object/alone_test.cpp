// The object in a process that has nothing to do with NCCL.
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

/// LD_PRELOAD reaches every process of a job, shells and all.
TEST(Alone, EveryProgramRunsAsBeforeWithItPreloaded) {
  const Outcome outcome = run({"/bin/sh", "-c", "echo a; cat /dev/null; (exit 7)"}, {{"LD_PRELOAD", PLUGIN}});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(outcome.out, "a\n");
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace onehop::test
