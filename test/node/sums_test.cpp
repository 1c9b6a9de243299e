// Every eligible call is taken and right, and every other call goes to NCCL and is counted under its reason.
#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(From2To8, Ranks, testing::Range(2, 9));

// Protects: the protocol over real shared memory, counts and alignments, in place and out of place, the
// limit, and results with the same bits on all ranks.
TEST_P(Ranks, SumsOfEveryTypeAndSizeAreTakenAndRight) {
  run_counted({.scenario = "sums", .ranks = GetParam(), .argument = GetParam() <= 3 ? "1" : "7"});
}

TEST_P(Ranks, OtherCallsGoToNcclAndAreCounted) {
  run_counted({.scenario = "others", .ranks = GetParam()});
}

}  // namespace
}  // namespace onehop::node
