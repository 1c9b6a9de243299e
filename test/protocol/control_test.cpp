// Controls: each breaks one thing that the proof needs, and must be caught. A harness that lets one of these
// pass proves nothing about the protocol.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "test/protocol/broken.hpp"
#include "test/protocol/folded_fabric.hpp"
#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"
#include "test/protocol/reordering_memory.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

using std::chrono::milliseconds;

RanksOptions impatient(uint32_t ranks) {
  RanksOptions options;
  options.layout = {ranks, 32, 32};
  options.budget = milliseconds(300);
  return options;
}

/// `steps` of two packs: in a two-shot ranks 0 and 1 own one each, and rank 2, if there is one, none.
Script plain_steps(uint32_t steps, uint32_t ranks, Method method, Element element = Element::kFloat32) {
  Script script;
  for (uint32_t k = 0; k < steps; ++k)
    script.push_back(plain_step(element, 2 * sizeof(Pack) / element_size(element), ranks, k, method));
  return script;
}

// With two slots the slot of k-1, which rank 0 empties during k, is the slot of k+1, which rank 1 may have
// sent.
template <class Design>
Outcome clear_after_the_peer_sent() {
  constexpr uint32_t kSteps = 8;
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch == Touch::kClear && rank == 0 && k + 1 < kSteps && progress.may_pause(rank, k))
      wait_for([&] { return progress.has_sent(1, k + 1); });
  });
  const Script script = plain_steps(kSteps, 2, Method::kOneShot);
  RanksOptions options = impatient(2);
  options.first = turn_at(1, Design::Rules::kInboxSlots);
  return Ranks<HookedFabric, Variant<Design>>(fabric, script, options).run();
}

TEST(Control, TwoInboxSlotsLoseWhatWasSentEarly) {
  const Outcome outcome = clear_after_the_peer_sent<TwoInboxSlots>();
  EXPECT_TRUE(outcome.timed_out());
  EXPECT_LT(outcome.finished[0], 8u);
}

TEST(Control, ThreeInboxSlotsDoNot) {
  const Outcome outcome = clear_after_the_peer_sent<ProvenDesign>();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
}

/// Steps of change words, every other with the data of the step two before, which is the step of the same
/// slot.
Script repeating_steps(uint32_t steps, uint32_t ranks, std::initializer_list<Method> methods) {
  Script script;
  for (uint32_t k = 0; k < steps; ++k)
    script.push_back(
        plain_step(Element::kFloat32, 8, ranks, k / 4 * 2 + k % 2, methods.begin()[k % methods.size()]));
  return script;
}

constexpr std::initializer_list<Method> kPullSequences[] = {
    {Method::kOneShotPull}, {Method::kTwoShotPull}, {Method::kTwoShotPull, Method::kOneShotPull}};

// Rank 2, whose data its peers have, and which owns no slice, comes to look at the words of k when rank 0 has
// sent those of k+1.
template <class Design>
Outcome look_after_the_peer_sent_again(std::initializer_list<Method> methods) {
  constexpr uint32_t kSteps = 8;
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (touch == Touch::kReceive && rank == 2 && k + 1 < kSteps && progress.may_pause(rank, k))
      wait_for([&] { return progress.has_sent(0, k + 1); });
  });
  const Script script = repeating_steps(kSteps, 3, methods);
  return Ranks<HookedFabric, Variant<Design>>(fabric, script, impatient(3)).run();
}

// In two-shots alone one slot would do: see README.md.
TEST(Control, OneSlotOfChangeWordsIsWrittenOverUnderALaggard) {
  EXPECT_FALSE(look_after_the_peer_sent_again<OneChangeSlot>(kPullSequences[0]).problems.empty());
  EXPECT_FALSE(look_after_the_peer_sent_again<OneChangeSlot>(kPullSequences[2]).problems.empty());
}

TEST(Control, TwoSlotsOfChangeWordsAreNot) {
  for (const auto& methods : kPullSequences) {
    const Outcome outcome = look_after_the_peer_sent_again<ProvenDesign>(methods);
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  }
}

/// Over memory that is quick, and over memory that is not.
template <class Design>
void expect_change_words_fail(const Script& script, const RanksOptions& options) {
  PlainFabric plain;
  EXPECT_FALSE((Ranks<PlainFabric, Variant<Design>>(plain, script, options).run().problems.empty()));
  ReorderingFabric reordering(5);
  EXPECT_FALSE(
      (Ranks<ReorderingFabric, Variant<Design>>(reordering, script, options).run().problems.empty()));
}

TEST(Control, EqualWordsThatAreNotMarkedNeverArrive) {
  for (const auto& methods : kPullSequences)
    expect_change_words_fail<NeverTheSameAgain>(repeating_steps(8, 3, methods), impatient(3));
}

TEST(Control, ReaderThatForgetsBelievesOldWords) {
  for (const auto& methods : kPullSequences)
    expect_change_words_fail<ForgetfulReader>(repeating_steps(8, 3, methods), impatient(3));
}

TEST(Control, PlaceThatChangesItsReaderMisleadsIt) {
  Script script;
  for (uint32_t k = 0; k < 24; ++k)
    script.push_back(plain_step(Element::kFloat32, k % 4 < 2 ? 12 : 24, 3, k, Method::kTwoShotPull));
  expect_change_words_fail<MovingSlices>(script, impatient(3));
}

/// Memory where a peek() may see what a place held before it held what this rank last took there.
class BackwardFabric : public PlainFabric {
 public:
  class Memory : public HostMemory {
   public:
    explicit Memory(BackwardFabric& fabric) : fabric_(fabric) {}
    void send(Pack* to, const Pack& pack) {
      std::lock_guard lock(fabric_.mutex_);
      fabric_.history_[to].push_back(pack);
      HostMemory::send(to, pack);
    }
    Pack peek(const Pack* from) {
      std::lock_guard lock(fabric_.mutex_);
      const std::vector<Pack>& history = fabric_.history_[from];
      return history.size() < 2 ? receive(from) : history[history.size() - 2];
    }

   private:
    BackwardFabric& fabric_;
  };
  Memory memory(uint32_t, uint32_t) { return Memory(*this); }

 private:
  std::mutex mutex_;
  std::map<const Pack*, std::vector<Pack>> history_;
};

// An old flag costs time, an old word would be believed.
TEST(Control, LookThatGoesBackIsBelieved) {
  for (Element element : {Element::kFloat32, Element::kInt32}) {
    BackwardFabric fabric;
    Script script = plain_steps(12, 2, Method::kOneShotPull, element);
    for (Step& step : script) step.parts[0].delay_us = 1000;  // rank 1, which peeks, comes too early
    const Outcome outcome = Ranks<BackwardFabric, Proven>(fabric, script, impatient(2)).run();
    EXPECT_EQ(outcome.problems.empty(), element == Element::kInt32) << outcome.text();
  }
}

TEST(Control, ShadowsThatAreNotFilledMislead) {
  for (const auto& methods : kPullSequences) {
    Script script = repeating_steps(8, 3, methods);
    script[0].parts[0].delay_us = 20000;
    RanksOptions options = impatient(3);
    options.fresh_shadow = 0;
    expect_change_words_fail<ProvenDesign>(script, options);
  }
}

TEST(Control, WithoutClearingOldDataIsBelieved) {
  for (Method method : kAllMethods) {
    if (is_pull(method)) continue;  // nothing is emptied there
    constexpr uint32_t slots = kInboxSlots;
    Progress progress;
    HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
      if (touch == Touch::kSent) progress.note_sent(rank, k);
      // Rank 1 can go on to its next operation only if it takes the slot's old data for this one's.
      if (touch == Touch::kLoadTurn && rank == 0 && k == slots)
        wait_for([&] { return progress.has_sent(1, k + 1); }, milliseconds(1000));
    });
    const Script script = plain_steps(10, 2, method);
    RanksOptions options = impatient(2);
    options.islands = islands_of("AB");
    const Outcome outcome = Ranks<HookedFabric, Variant<NoClearing>>(fabric, script, options).run();
    EXPECT_FALSE(outcome.problems.empty()) << name_of(method);
  }
}

TEST(Control, OwnerThatDoesNotWaitSendsAWrongResult) {
  for (Method method : {Method::kTwoShot, Method::kTwoShotPull})
    for (Element element : {Element::kFloat32, Element::kInt32}) {
      ReorderingFabric fabric(4);
      const Script script = plain_steps(30, 3, method, element);
      const Outcome outcome =
          Ranks<ReorderingFabric, Variant<OwnerDoesNotWait>>(fabric, script, impatient(3)).run();
      EXPECT_FALSE(outcome.problems.empty());
    }
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
    const Outcome outcome = Ranks<PlainFabric, Variant<TurnPerBlock>>(fabric, script, impatient(2)).run();
    EXPECT_FALSE(outcome.problems.empty());
  }
}

TEST(Control, OneFlagPerPackBelievesTheOtherHalf) {
  for (Method method : {Method::kOneShot, Method::kTwoShotPull}) {
    ReorderingFabric fabric(3);
    Script script;
    for (uint32_t k = 0; k < 300; ++k) script.push_back(plain_step(Element::kInt32, 24, 2, k, method));
    const Outcome outcome =
        Ranks<ReorderingFabric, Variant<OneFlagPerPack>>(fabric, script, impatient(2)).run();
    EXPECT_FALSE(outcome.problems.empty());
  }
}

/// The proven protocol on memory whose parts lie on top of each other.
Outcome run_folded(Fold fold, const Script& script) {
  FoldedFabric fabric(fold);
  return Ranks<FoldedFabric, Proven>(fabric, script, impatient(2)).run();
}

// Push and pull by turns: what the one leaves, the other takes for words of its own.
TEST(Control, PushAndPullCannotShareMemory) {
  for (Element element : {Element::kFloat32, Element::kInt32}) {
    Script script;
    for (uint32_t k = 0; k < 24; ++k)
      script.push_back(plain_step(element, 32 * 4 / element_size(element), 2, k,
                                  k % 2 ? Method::kOneShotPull : Method::kOneShot));
    const Outcome outcome = run_folded(Fold::kOutboxWithInbox, script);
    EXPECT_FALSE(outcome.problems.empty());
  }
}

TEST(Control, SentinelsAndFlagsCannotShareMemory) {
  for (Method method : {Method::kOneShot, Method::kOneShotPull}) {
    Script script;
    for (uint32_t k = 0; k < 24; ++k)
      script.push_back(plain_step(k / 2 % 2 ? Element::kFloat32 : Element::kInt32, 32, 2, k, method));
    EXPECT_FALSE(run_folded(Fold::kFlagsWithSentinels, script).problems.empty());
  }
}

// The folding alone does no harm.
TEST(Control, PushAloneAndPullAloneCan) {
  for (Method method : {Method::kOneShot, Method::kOneShotPull}) {
    const Outcome outcome = run_folded(Fold::kOutboxWithInbox, plain_steps(24, 2, method));
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  }
}

}  // namespace
}  // namespace onehop::test
