// Every wait ends: at the host's word, or when the budget is used up.
#include <gtest/gtest.h>

#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"

namespace onehop::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kQuick{5000};  ///< far less than any deadline, far more than a busy machine needs

Script one_step(uint32_t ranks, Element element, Method method) {
  Script script{plain_step(element, 40, ranks, 1, method)};
  for (Part& part : script[0].parts) part.shape = {2, 2, true};
  return script;
}

RanksOptions without(uint32_t absent, milliseconds budget) {
  RanksOptions options;
  options.layout = {3, 48, 48};
  options.islands = islands_of("ABB");
  options.absent = 1u << absent;
  options.budget = budget;
  return options;
}

class Stopping : public testing::TestWithParam<Method> {};

TEST_P(Stopping, AbortEndsAllWaits) {
  for (Element element : {Element::kFloat16, Element::kInt64}) {
    PlainFabric fabric;
    const Script script = one_step(3, element, GetParam());
    Ranks ranks(fabric, script, without(2, milliseconds(0)));
    steady_clock::time_point stopped;
    std::thread host([&] {
      std::this_thread::sleep_for(milliseconds(50));
      stopped = steady_clock::now();
      ranks.stop(0);
      ranks.stop(1);
    });
    const Outcome outcome = ranks.run();
    const auto left = steady_clock::now();
    host.join();
    EXPECT_LT(left - stopped, kQuick);
    for (uint32_t r : {0u, 1u}) {
      EXPECT_EQ(outcome.stops[r].why, Stop::kAbort);
      EXPECT_EQ(outcome.finished[r], 0u);
    }
  }
}

// All methods but the islands, where a rank may wait for one that waits itself.
TEST_P(Stopping, TimeoutNamesTheMissingRank) {
  for (uint32_t absent : {0u, 1u, 2u}) {
    PlainFabric fabric;
    const Script script = one_step(3, Element::kFloat32, GetParam());
    Ranks ranks(fabric, script, without(absent, milliseconds(100)));
    const auto start = steady_clock::now();
    const Outcome outcome = ranks.run();
    const auto took = steady_clock::now() - start;
    EXPECT_GE(took, milliseconds(100));
    EXPECT_LT(took, kQuick);
    EXPECT_TRUE(outcome.timed_out());
    for (uint32_t r = 0; r < 3; ++r) {
      if (r == absent) continue;
      EXPECT_EQ(outcome.finished[r], 0u);
      EXPECT_NE(outcome.stops[r].why, Stop::kNone);
      // The harness aborts the others as soon as it sees one timeout.
      if (outcome.stops[r].why != Stop::kTimeout) continue;
      if (GetParam() == Method::kIslands) {
        EXPECT_NE(outcome.stops[r].missing_rank, r);
      } else {
        EXPECT_EQ(outcome.stops[r].missing_rank, absent);
      }
    }
  }
}

TEST_P(Stopping, FailedCommunicatorStaysFailed) {
  PlainFabric fabric;
  const Script script = one_step(3, Element::kFloat32, GetParam());
  RanksOptions options = without(2, milliseconds(0));
  Ranks ranks(fabric, script, options);
  ranks.stop(0);
  HostMemory memory;
  unsigned char buffer[64] = {};
  const auto start = steady_clock::now();
  for (int i = 0; i < 5; ++i)
    Proven::run(memory, SingleThread{}, ranks.comm(0),
                {buffer, buffer, 16, Element::kFloat32, Reduction::kSum, GetParam()});
  EXPECT_LT(steady_clock::now() - start, kQuick);
}

INSTANTIATE_TEST_SUITE_P(Methods, Stopping, testing::ValuesIn(kAllMethods), [](const auto& parameter) {
  std::string name = name_of(parameter.param);
  for (char& letter : name)
    if (letter == ' ' || letter == '-') letter = '_';
  return name;
});

}  // namespace
}  // namespace onehop::test
