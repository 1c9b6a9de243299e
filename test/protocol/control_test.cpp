// Controls: each breaks one thing that the proof needs, and must be caught. A harness that lets one of these
// pass proves nothing about the protocol.
#include <gtest/gtest.h>

#include "test/protocol/ranks.hpp"
#include "test/protocol/reordering_memory.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

using std::chrono::milliseconds;

RanksOptions impatient() {
  RanksOptions options;
  options.budget = milliseconds(300);
  return options;
}

struct TwoSlots : ProvenRules {
  static constexpr uint32_t kSlots = 2;
};
struct NoClearing : ProvenRules {
  static constexpr bool kClears = false;
};
struct TurnPerBlock : ProvenRules {
  static constexpr bool kTurnPerBlock = true;
};

// With two slots the slot of k-1, which rank 0 empties during k, is the slot of k+1, which rank 1 may have
// sent.
template <class Rules>
Outcome clear_after_the_peer_sent() {
  constexpr uint32_t kSteps = 8;
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch == Touch::kClear && rank == 0 && k + 1 < kSteps && progress.may_pause(rank, k))
      wait_for([&] { return progress.has_sent(1, k + 1); });
  });
  Script script;
  for (uint32_t k = 0; k < kSteps; ++k) script.push_back(plain_step(Element::kFloat32, 4, 2, k));
  RanksOptions options = impatient();
  options.first = turn_at(1, Rules::kSlots);
  return Ranks<HookedFabric, Variant<Rules>>(fabric, script, options).run();
}

TEST(Control, TwoSlotsLoseWhatWasSentEarly) {
  const Outcome outcome = clear_after_the_peer_sent<TwoSlots>();
  EXPECT_TRUE(outcome.timed_out());
  EXPECT_LT(outcome.finished[0], 8u);
}

TEST(Control, ThreeSlotsDoNot) {
  const Outcome outcome = clear_after_the_peer_sent<ProvenRules>();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
}

TEST(Control, WithoutClearingOldDataIsBelieved) {
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    // Rank 1 can go on to its next operation only if it takes the slot's old data for this one's.
    if (touch == Touch::kLoadTurn && rank == 0 && k == kSlots)
      wait_for([&] { return progress.has_sent(1, k + 1); }, milliseconds(1000));
  });
  Script script;
  for (uint32_t k = 0; k < 10; ++k) script.push_back(plain_step(Element::kFloat32, 4, 2, k));
  const Outcome outcome = Ranks<HookedFabric, Variant<NoClearing>>(fabric, script, impatient()).run();
  EXPECT_FALSE(outcome.problems.empty());
}

// A block that was not part of the last launch has missed a turn.
TEST(Control, TurnPerBlockDoesNotSurviveAChangeOfGrid) {
  for (Element element : {Element::kFloat32, Element::kInt32}) {
    PlainFabric fabric;
    Script script;
    for (uint32_t k = 0; k < 8; ++k) {
      script.push_back(plain_step(element, 32, 2, k));
      script.back().parts[0].shape.blocks = 1 + k % 2;
    }
    const Outcome outcome = Ranks<PlainFabric, Variant<TurnPerBlock>>(fabric, script, impatient()).run();
    EXPECT_FALSE(outcome.problems.empty());
  }
}

/// Trusts that 16 bytes land at once.
struct OneFlagPerPack : FlagWords {
  static uint32_t look(uint32_t seen, const Line& line, uint32_t epoch) {
    return seen | (line.pack[0].word[1] ^ epoch) | (line.pack[1].word[1] ^ epoch);
  }
};

TEST(Control, OneFlagPerPackBelievesTheOtherHalf) {
  ReorderingFabric fabric(3);
  Script script;
  for (uint32_t k = 0; k < 300; ++k) script.push_back(plain_step(Element::kInt32, 24, 2, k));
  const Outcome outcome =
      Ranks<ReorderingFabric, Variant<ProvenRules, OneFlagPerPack>>(fabric, script, impatient()).run();
  EXPECT_FALSE(outcome.problems.empty());
}

}  // namespace
}  // namespace onehop::test
