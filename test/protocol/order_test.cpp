// The corners of the proof, each forced by a schedule that random delays would meet rarely.
#include <gtest/gtest.h>

#include "test/protocol/ranks.hpp"
#include "test/protocol/reordering_memory.hpp"
#include "test/protocol/scale.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

using std::chrono::milliseconds;

/// Steps of one pack each, over `elements` in turn.
Script short_steps(uint32_t steps, uint32_t ranks, std::initializer_list<Element> elements) {
  Script script;
  for (uint32_t k = 0; k < steps; ++k) {
    const Element element = elements.begin()[k % elements.size()];
    script.push_back(plain_step(element, 16 / element_size(element), ranks, k));
  }
  return script;
}

// The furthest that a peer can be ahead: it has sent k+1 while I have not yet cleared, or even read, k.
TEST(Order, PeerIsOneOperationAhead) {
  constexpr uint32_t kSteps = 30;
  for (Touch late : {Touch::kClear, Touch::kReceive}) {
    Progress progress;
    HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
      if (touch == Touch::kSent) progress.note_sent(rank, k);
      if (touch == late && rank == 0 && k + 1 < kSteps && progress.may_pause(rank, k))
        wait_for([&] { return progress.has_sent(1, k + 1); });
    });
    const Script script = short_steps(kSteps, 2, {Element::kFloat32, Element::kBfloat16, Element::kInt64});
    const Outcome outcome = Ranks(fabric, script, {}).run();
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  }
}

// No further: while I have not finished k, no peer has begun k+2.
TEST(Order, PeerIsNeverTwoOperationsAhead) {
  constexpr uint32_t kSteps = 12;
  Progress progress;
  std::atomic<uint32_t> too_far{0};
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch != Touch::kReceive || rank != 0 || k + 2 >= kSteps || !progress.may_pause(rank, k)) return;
    wait_for([&] { return progress.has_sent(1, k + 2) || progress.has_sent(2, k + 2); }, milliseconds(5));
    too_far += progress.has_sent(1, k + 2) || progress.has_sent(2, k + 2);
  });
  RanksOptions options;
  options.ranks = 3;
  const Script script = short_steps(kSteps, 3, {Element::kFloat32});
  const Outcome outcome = Ranks(fabric, script, options).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_EQ(too_far, 0u);
}

// An operation without elements waits for nobody. If it had a turn, rank 0 would run three of them ahead and
// write over what rank 1 has not read.
TEST(Order, EmptyOperationsTakeNoTurn) {
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch == Touch::kReceive && rank == 1 && k == 0 && progress.may_pause(rank, k))
      wait_for([&] { return progress.has_sent(0, 3); });
  });
  Script script;
  for (uint32_t k = 0; k < 8; ++k) script.push_back(plain_step(Element::kFloat32, k % 3 == 0 ? 4 : 0, 2, k));
  Ranks ranks(fabric, script, {});
  const Outcome outcome = ranks.run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_EQ(ranks.comm(0).state->turn.epoch, first_turn().epoch + 3);
}

// A rank may free its inbox when its last kernel has returned: nothing is still on its way there. The fabric
// looks after every kernel of every rank (ReorderingFabric::end); this test makes sure that there was
// something to see, by a sender whose own kernel ends long before its words land.
TEST(Order, ReturnedKernelHasReceivedEverything) {
  ReorderingFabric fabric(7);
  ScriptOptions options;
  options.ranks = 4;
  options.capacity = 8;
  options.threads = 2;
  options.steps = scaled(600, 200);
  options.seed = 7;
  const Script script = random_script(options);
  RanksOptions ranks;
  ranks.ranks = options.ranks;
  ranks.capacity = options.capacity;
  ranks.threads = options.threads;
  const Outcome outcome = Ranks(fabric, script, ranks).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_GT(fabric.outlived(), 20u) << "words of a kernel in flight after that kernel's end";
}

}  // namespace
}  // namespace onehop::test
