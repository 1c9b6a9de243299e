// The corners of the proof, each forced by a schedule that random delays would meet rarely.
#include <gtest/gtest.h>

#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"
#include "test/protocol/reordering_memory.hpp"
#include "test/protocol/scale.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

using std::chrono::milliseconds;

/// Three ranks: rank 0 alone in its island, ranks 1 and 2 mates.
RanksOptions three_ranks() {
  RanksOptions options;
  options.layout = {3, 32, 32};
  options.islands = islands_of("ABB");
  return options;
}

/// Steps of a few packs each, over `elements` in turn.
Script short_steps(uint32_t steps, Method method, uint32_t packs, std::initializer_list<Element> elements) {
  Script script;
  for (uint32_t k = 0; k < steps; ++k) {
    const Element element = elements.begin()[k % elements.size()];
    script.push_back(plain_step(element, packs * 16 / element_size(element), 3, k, method));
  }
  return script;
}

std::string name_of_method(const testing::TestParamInfo<Method>& parameter) {
  std::string name = name_of(parameter.param);
  for (char& letter : name)
    if (letter == ' ' || letter == '-') letter = '_';
  return name;
}

/// A rank that peers do not need once it has sent its data: it owns no slice, and waits for the results only.
struct Laggard {
  Method method;
  uint32_t rank;
  uint32_t packs;
};

void PrintTo(const Laggard& laggard, std::ostream* out) {
  *out << name_of(laggard.method);
}

class PeerIsAhead : public testing::TestWithParam<Laggard> {};

// The furthest that a peer can be ahead: it has sent k+1 while the laggard has not yet cleared, or even read,
// k.
TEST_P(PeerIsAhead, ByOneOperation) {
  constexpr uint32_t kSteps = 20;
  const auto [method, laggard, packs] = GetParam();
  for (Touch late : {Touch::kClear, Touch::kReceive}) {
    Progress progress;
    std::atomic<uint32_t> ahead{0};
    HookedFabric fabric([&, me = laggard](Touch touch, uint32_t rank, uint32_t k) {
      if (touch == Touch::kSent) progress.note_sent(rank, k);
      if (touch != late || rank != me || k + 1 >= kSteps || !progress.may_pause(rank, k)) return;
      wait_for([&] { return progress.has_sent(0, k + 1); }, milliseconds(5000));
      ahead += progress.has_sent(0, k + 1);
    });
    const Script script =
        short_steps(kSteps, method, packs, {Element::kFloat32, Element::kBfloat16, Element::kInt64});
    const Outcome outcome = Ranks(fabric, script, three_ranks()).run();
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
    EXPECT_GE(ahead, kSteps - 3) << "the schedule was not met";
  }
}

// An operation without elements waits for nobody. If it had a turn, rank 0 would run three of them ahead and
// write over what the laggard has not read.
TEST_P(PeerIsAhead, EmptyOperationsTakeNoTurn) {
  const auto [method, laggard, packs] = GetParam();
  Progress progress;
  HookedFabric fabric([&, me = laggard](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch == Touch::kReceive && rank == me && k == 0 && progress.may_pause(rank, k))
      wait_for([&] { return progress.has_sent(0, 3); }, milliseconds(5000));
  });
  Script script = short_steps(8, method, packs, {Element::kFloat32});
  for (uint32_t k = 0; k < 8; ++k)
    if (k % 3 != 0) script[k] = plain_step(Element::kFloat32, 0, 3, k, method);
  Ranks ranks(fabric, script, three_ranks());
  const Outcome outcome = ranks.run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_EQ(ranks.comm(0).state->turn.epoch, first_turn().epoch + 3);
}

INSTANTIATE_TEST_SUITE_P(Methods, PeerIsAhead,
                         testing::Values(Laggard{Method::kOneShot, 2, 1}, Laggard{Method::kTwoShot, 2, 2},
                                         Laggard{Method::kOneShotPull, 2, 1},
                                         Laggard{Method::kTwoShotPull, 2, 2},
                                         Laggard{Method::kIslands, 1, 1}));

class EveryMethod : public testing::TestWithParam<Method> {};

// No further: while I have not finished k, no peer has begun k+2.
TEST_P(EveryMethod, PeerIsNeverTwoOperationsAhead) {
  constexpr uint32_t kSteps = 12;
  Progress progress;
  std::atomic<uint32_t> too_far{0};
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch != Touch::kReceive || rank != 0 || k + 2 >= kSteps || !progress.may_pause(rank, k)) return;
    wait_for([&] { return progress.has_sent(1, k + 2) || progress.has_sent(2, k + 2); }, milliseconds(5));
    too_far += progress.has_sent(1, k + 2) || progress.has_sent(2, k + 2);
  });
  const Script script = short_steps(kSteps, GetParam(), 1, {Element::kFloat32});
  const Outcome outcome = Ranks(fabric, script, three_ranks()).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_EQ(too_far, 0u);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn(kAllMethods), name_of_method);

class Staged : public testing::TestWithParam<Method> {};

// What staging is for: rank 0 sends to rank 2 when it has what rank 2 sends first, not before.
TEST_P(Staged, OneStreamIntoAndOutOfEachRank) {
  for (uint32_t k : {0u, 3u}) {
    std::atomic<uint32_t> sends{0}, early{0};
    HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t operation) {
      if (operation != k) return;
      if (touch == Touch::kSend && rank == 0) ++sends;
      if (touch == Touch::kLoadTurn && rank == 2) {
        wait_for([&] { return sends > 0; }, milliseconds(5000));
        wait_for([&] { return sends > 1; }, milliseconds(50));
        early = sends.load();
      }
    });
    const uint32_t packs = GetParam() == Method::kOneShotStaged ? 1 : 3;  // a pack for each peer
    const Script script = short_steps(4, GetParam(), packs, {Element::kFloat32});
    const Outcome outcome = Ranks(fabric, script, three_ranks()).run();
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
    EXPECT_EQ(early, 1u);
    EXPECT_GE(sends, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Staged, testing::Values(Method::kOneShotStaged, Method::kTwoShotStaged),
                         name_of_method);

// A rank may free its inbox when its last kernel has returned: nothing is still on its way there. And when it
// has finished an operation, nobody reads what it sent in the one before. The fabric looks after every kernel
// of every rank (ReorderingFabric::end); this test makes sure that there was something to see, by a sender
// whose own kernel ends long before its words land.
TEST(Order, ReturnedKernelHasReceivedEverything) {
  ReorderingFabric fabric(7);
  ScriptOptions options;
  options.layout = {4, 16, 20};
  options.islands = islands_of("AABB");
  options.threads = 2;
  options.steps = scaled(600, 200);
  options.seed = 7;
  const Script script = random_script(options);
  RanksOptions ranks;
  ranks.layout = options.layout;
  ranks.islands = options.islands;
  ranks.threads = options.threads;
  const Outcome outcome = Ranks(fabric, script, ranks).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_GT(fabric.outlived(), 20u) << "words of a kernel in flight after that kernel's end";
}

}  // namespace
}  // namespace onehop::test
