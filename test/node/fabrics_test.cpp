// What is chosen on modelled fabrics by the whole of set-up: pairs, rounds and choice, in real processes.
#include <gtest/gtest.h>

#include "test/node/job.hpp"

namespace onehop::node {
namespace {

struct Expected {
  const char* fabric;
  int ranks;
  const char* on;  ///< a part of the line; of OFF too
  const char* also = "";
};

std::ostream& operator<<(std::ostream& out, const Expected& expected) {
  return out << expected.fabric;
}

class Fabrics : public testing::TestWithParam<Expected> {};
INSTANTIATE_TEST_SUITE_P(
    All, Fabrics,
    testing::Values(Expected{"switch", 8, ": one-shot push up to ", ", two-shot push up to 65536 "},
                    Expected{"collapse", 8, ": one-shot pull up to ", ", two-shot pull up to 65536 "},
                    Expected{"root-complex", 8, ": one-shot push up to ", ", two-shot push up to "},
                    Expected{"two-sockets", 8, ": one-shot push up to ",
                             "islands up to 65536 bytes (0,1,2,3/4,5,6,7) ("},
                    Expected{"host-memory", 4, ": one-shot pull up to ", ", two-shot pull up to 65536 "},
                    Expected{"pair", 2, ": one-shot push up to 65536 "},
                    Expected{"no-use", 2, "OFF", ": NCCL is as fast at every size that was measured"}));

// Protects: the pairs' views of the memory, their schedule, who is told what, and that the memory is as new
// afterwards: the job's own calls follow.
TEST_P(Fabrics, AreMeasuredRightly) {
  const Expected& expected = GetParam();
  Environment environment = {{"ONEHOP_MEASURE", "quick"},
                             {"ONEHOP_MAX_BYTES", "64K"},
                             {"ONEHOP_STANDIN_FABRIC", std::string(expected.fabric) + ":0.02:1"}};
  if (std::string(expected.fabric) == "host-memory") environment["NCCL_P2P_DISABLE"] = "1";
  const Outcome outcome =
      run({.scenario = "plain", .ranks = expected.ranks, .argument = "65536", .environment = environment});
  const auto lines = outcome.log(" for a communicator of " + std::to_string(expected.ranks) + " ranks");
  ASSERT_EQ(lines.size(), 1u);
  for (const char* part : {expected.on, expected.also})
    EXPECT_NE(lines[0].find(part), std::string::npos) << part << ": " << lines[0];
  for (const Process& process : outcome.processes)
    EXPECT_EQ(process.counted(), outcome.processes[0].counted());
}

// Protects: full measures pairs of few ranks and in host memory too, and says what it found.
TEST(Fabrics, PairsAreInTheLog) {
  for (const char* staging : {"p2p", "host"}) {
    const Outcome outcome = run({.scenario = "plain",
                                 .ranks = 3,
                                 .argument = "65536",
                                 .environment = {{"ONEHOP_MEASURE", "full"},
                                                 {"ONEHOP_LOG", "debug"},
                                                 {"ONEHOP_STAGING", staging},
                                                 {"ONEHOP_MAX_BYTES", "16K"},
                                                 {"ONEHOP_STANDIN_TIMES", "1"}}});
    EXPECT_EQ(outcome.log("pairs of 3 ranks").size(), 1u);
  }
}

}  // namespace
}  // namespace onehop::node
