// Every eligible call is taken and right, and every other call goes to NCCL and is counted under its reason.
#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

/// The scenarios' limit, so that few bytes are beyond it.
const Environment kLimit = {{"ONEHOP_MAX_BYTES", "64K"}};

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(From2To8, Ranks, testing::Range(2, 9));

// Protects: the protocol over real shared memory, counts and alignments, in place and out of place, the
// limit, the arithmetic of every type and operator, and results with the same bits on all ranks.
TEST_P(Ranks, ReductionsOfEveryTypeAndSizeAreTakenAndRight) {
  run_counted({.scenario = "reductions",
               .ranks = GetParam(),
               .argument = GetParam() <= 3 ? "1" : "11",
               .environment = kLimit});
}

TEST_P(Ranks, OtherCallsGoToNcclAndAreCounted) {
  run_counted({.scenario = "others", .ranks = GetParam(), .environment = kLimit});
}

/// A job in which calls with fp8 are counted as `counted`, and the line says which types are taken.
void run_fp8(Job job, const std::string& counted) {
  job.scenario = "fp8";
  job.ranks = 3;
  job.argument = counted;
  const std::vector<std::string> on = run_counted(job).log("ON for");
  ASSERT_EQ(on.size(), 1u);
  EXPECT_EQ(on[0].find("all types but fp8 and") != std::string::npos, counted != "taken") << on[0];
}

TEST(Fp8, IsTakenWhereNcclReducesIt) {
  run_fp8({}, "taken");
  run_fp8({.environment = {{"ONEHOP_STANDIN_NCCL_VERSION", "22403"}, {"ONEHOP_STANDIN_CAPABILITY", "100"}}},
          "taken");
}

// Protects: NCCL's own error for GPUs that it does not reduce fp8 on. It must be everybody's: if one rank
// took the call, it would wait for the others for ever.
TEST(Fp8, IsPassedOnOlderGpusOnAllRanksAlike) {
  const Environment older = {{"ONEHOP_STANDIN_CAPABILITY", "80"}};
  run_fp8({.environment = older}, "type");
  for (int rank = 0; rank < 3; ++rank) run_fp8({.of = {{rank, older}}}, "type");
  run_fp8({.environment = {{"ONEHOP_STANDIN_CAPABILITY", "89"}}}, "type");
}

// Protects: NCCL's own error of a release that does not know fp8.
TEST(Fp8, IsPassedToAnOlderNccl) {
  run_fp8({.environment = {{"ONEHOP_STANDIN_NCCL_VERSION", "22304"}}}, "type");
}

}  // namespace
}  // namespace onehop::node
