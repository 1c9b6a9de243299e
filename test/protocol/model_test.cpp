// Every order in which two or three ranks can run a few operations, for every method; and designs that lack
// something, which must be found out. Prints the number of states, and how each broken design fails.
#include "test/protocol/model.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <tuple>

#include "test/protocol/broken.hpp"
#include "test/protocol/partition.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {
namespace {

constexpr WordKind kBothKinds[] = {WordKind::kSentinel, WordKind::kFlag};
constexpr Method kFamily[] = {Method::kOneShot, Method::kTwoShot, Method::kOneShotPull, Method::kTwoShotPull};

constexpr const char* kPartitions[] = {"AAB", "ABB", "ABA", "ABC"};  ///< of three ranks

ModelOptions options_for(uint32_t ranks, std::vector<ModelStep> steps, Grain grain = Grain::kCoarse) {
  ModelOptions options;
  options.ranks = ranks;
  options.islands = islands_of(ranks == 2 ? "AB" : "ABA");
  options.steps = std::move(steps);
  options.grain = grain;
  return options;
}

std::vector<ModelStep> same_steps(uint32_t count, Method method, WordKind words, uint32_t packs) {
  return std::vector<ModelStep>(count, ModelStep{method, words, packs});
}

void expect_holds(const ModelOptions& options, const std::string& what) {
  const Verdict verdict = check(model_of<ProvenDesign>(), options);
  std::cout << "[   states ] " << verdict.states << ", " << what << std::endl;
  EXPECT_TRUE(verdict.holds()) << verdict.text();
}

std::string name_of(const ModelStep& step) {
  return std::string(onehop::name_of(step.method)) +
         (step.words == WordKind::kFlag ? ", flags" : ", sentinels") +
         ", packs: " + std::to_string(step.packs);
}

// Six operations: each slot of an inbox is used twice, each of change words three times, with equal words
// among them. The epoch wraps after two.
TEST(Model, EveryMethodHolds) {
  for (uint32_t ranks : {2u, 3u})
    for (Method method : kAllMethods)
      for (WordKind words : kBothKinds)
        for (uint32_t packs : {1u, 2u}) {
          const auto steps = same_steps(6, method, words, packs);
          ModelOptions options = options_for(ranks, steps);
          if (ranks == 2 || method != Method::kIslands) {
            expect_holds(options, std::to_string(ranks) + " ranks, " + name_of(steps[0]));
            continue;
          }
          for (const char* partition : kPartitions) {
            options.islands = islands_of(partition);
            expect_holds(options, std::string(partition) + ", " + name_of(steps[0]));
          }
        }
}

// The same with finer steps, as far as there is time for them.
TEST(Model, EveryMethodHoldsLandingByLanding) {
  for (uint32_t ranks : {2u, 3u})
    for (Method method : kFamily)
      for (WordKind words : kBothKinds) {
        if (ranks == 3 && method == Method::kOneShot && words == WordKind::kFlag) continue;  // many millions
        const auto steps = same_steps(5, method, words, words == WordKind::kFlag ? 1 : 2);
        expect_holds(options_for(ranks, steps, Grain::kLandings),
                     std::to_string(ranks) + " ranks, " + name_of(steps[0]));
      }
}

TEST(Model, EveryMethodHoldsHalfByHalf) {
  for (Method method : kAllMethods)
    for (WordKind words : kBothKinds) {
      const auto steps = same_steps(5, method, words, words == WordKind::kFlag ? 1 : 2);
      expect_holds(options_for(2, steps, Grain::kHalves), "2 ranks, " + name_of(steps[0]));
    }
}

// Every sequence of five, with sizes that change: what one method leaves behind meets each of the others.
TEST(Model, EverySequenceOfMethodsHolds) {
  constexpr uint32_t kLength = 5, kSymbols = 2 * std::size(kFamily);
  const ModelDesign design = model_of<ProvenDesign>();
  uint64_t states = 0;
  uint32_t sequences = 1;
  for (uint32_t i = 0; i < kLength; ++i) sequences *= kSymbols;
  for (uint32_t sequence = 0; sequence < sequences; ++sequence) {
    std::vector<ModelStep> steps;
    for (uint32_t rest = sequence, i = 0; i < kLength; ++i, rest /= kSymbols)
      steps.push_back({kFamily[rest % kSymbols / 2], kBothKinds[rest % 2], 1 + (sequence >> i) % 2});
    const Verdict verdict = check(design, options_for(2, steps));
    states += verdict.states;
    ASSERT_TRUE(verdict.holds()) << "sequence " << sequence << "\n" << verdict.text();
  }
  std::cout << "[   states ] " << states << " in " << sequences << " sequences" << std::endl;
}

// Longer ones, of all methods, chosen at random.
TEST(Model, LongSequencesOfAllMethodsHold) {
  const ModelDesign design = model_of<ProvenDesign>();
  Random random(1);
  uint64_t states = 0;
  constexpr uint32_t kSequences = 300;
  for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
    std::vector<ModelStep> steps;
    for (uint32_t i = 0; i < 9; ++i)
      steps.push_back(
          {kAllMethods[random.below(kMethods)], kBothKinds[random.below(2)], random.between(1, 2)});
    ModelOptions options = options_for(3, steps);
    options.islands = islands_of(kPartitions[sequence % std::size(kPartitions)]);
    const Verdict verdict = check(design, options);
    states += verdict.states;
    ASSERT_TRUE(verdict.holds()) << "sequence " << sequence << "\n" << verdict.text();
  }
  std::cout << "[   states ] " << states << " in " << kSequences << " sequences" << std::endl;
}

/// Whatever the size of the steps (three ranks have too many of the finest); the trace is that of the
/// coarsest.
template <class Design>
void expect_fails(ModelOptions options) {
  for (Grain grain : {Grain::kCoarse, Grain::kLandings, Grain::kHalves}) {
    options.grain = grain;
    if (options.ranks > 2 && grain == Grain::kHalves) continue;
    const Verdict verdict = check(model_of<Design>(), options);
    EXPECT_FALSE(verdict.holds()) << "grain " << static_cast<int>(grain) << ", states " << verdict.states;
    if (grain == Grain::kCoarse) std::cout << verdict.text();
  }
}

/// From epoch 1, so that a number of slots that does not divide 2^32 has no part in it.
ModelOptions from_the_start(uint32_t ranks, std::vector<ModelStep> steps) {
  ModelOptions options = options_for(ranks, std::move(steps));
  options.first = first_turn();
  return options;
}

/// Whether the steps are coarse or fine, the same sequences fail.
template <class Design>
void expect_grains_agree(uint32_t sequences) {
  const ModelDesign design = model_of<Design>();
  Random random(2);
  uint32_t failed = 0;
  for (uint32_t sequence = 0; sequence < sequences; ++sequence) {
    std::vector<ModelStep> steps;
    const uint32_t length = random.between(2, 6);  // some are too short to fail
    while (steps.size() < length) {
      const Method method = kAllMethods[random.below(kMethods)];
      if (Design::has(method)) steps.push_back({method, WordKind::kSentinel, random.between(1, 2)});
    }
    ModelOptions options = from_the_start(2, steps);
    const bool holds = check(design, options).holds();
    for (Grain grain : {Grain::kLandings, Grain::kHalves}) {
      options.grain = grain;
      ASSERT_EQ(check(design, options).holds(), holds) << "sequence " << sequence << "\n"
                                                       << check(design, options).text();
    }
    failed += !holds;
  }
  std::cout << "[    agree ] " << failed << " of " << sequences << " sequences fail" << std::endl;
}

TEST(ModelControl, GrainsAgree) {
  expect_grains_agree<ProvenDesign>(100);
  expect_grains_agree<TwoInboxSlots>(100);
  expect_grains_agree<OneChangeSlot>(100);
  expect_grains_agree<NeverTheSameAgain>(100);
  expect_grains_agree<ForgetfulReader>(100);
  expect_grains_agree<MovingSlices>(100);
  expect_grains_agree<NoClearing>(100);
  expect_grains_agree<OwnerDoesNotWait>(100);
}

template <class Design>
void expect_holds_all_the_same(const ModelOptions& options) {
  const Verdict verdict = check(model_of<Design>(), options);
  EXPECT_TRUE(verdict.holds()) << verdict.text();
}

TEST(ModelControl, TwoInboxSlots) {
  for (Method method : {Method::kOneShot, Method::kTwoShot})
    for (WordKind words : kBothKinds)  // flags too: a line is renewed where a peer may have sent
      expect_fails<TwoInboxSlots>(
          from_the_start(method == Method::kTwoShot ? 3 : 2, same_steps(5, method, words, 1)));
}

constexpr Method kPulls[] = {Method::kOneShotPull, Method::kTwoShotPull};

/// A two-shot's words, then a one-shot's, and so on.
std::vector<ModelStep> pulls_by_turns(uint32_t count) {
  std::vector<ModelStep> steps;
  for (uint32_t i = 0; i < count; ++i) steps.push_back({kPulls[(i + 1) % 2], WordKind::kSentinel, 1});
  return steps;
}

TEST(ModelControl, OneSlotOfChangeWords) {
  for (uint32_t ranks : {2u, 3u}) {
    expect_fails<OneChangeSlot>(
        options_for(ranks, same_steps(4, Method::kOneShotPull, WordKind::kSentinel, 1)));
    expect_fails<OneChangeSlot>(options_for(ranks, pulls_by_turns(4)));
    // An owner has taken its words when it sends a result, and results are sent when all have sent data
    // again.
    expect_holds_all_the_same<OneChangeSlot>(
        options_for(ranks, same_steps(6, Method::kTwoShotPull, WordKind::kSentinel, 2)));
  }
}

TEST(ModelControl, EqualWordsThatAreNotMarked) {
  for (Method method : kPulls)
    expect_fails<NeverTheSameAgain>(options_for(2, same_steps(6, method, WordKind::kSentinel, 1)));
}

TEST(ModelControl, ReaderThatForgets) {
  for (Method method : kPulls)
    expect_fails<ForgetfulReader>(options_for(2, same_steps(6, method, WordKind::kSentinel, 1)));
}

TEST(ModelControl, PlaceThatChangesItsReader) {
  std::vector<ModelStep> steps;
  for (uint32_t packs : {2u, 2u, 4u, 4u, 2u, 2u})
    steps.push_back({Method::kTwoShotPull, WordKind::kSentinel, packs});
  expect_fails<MovingSlices>(options_for(2, steps));
}

TEST(ModelControl, ShadowsThatAreNotFilled) {
  for (Method method : kPulls) {
    ModelOptions options = options_for(2, same_steps(2, method, WordKind::kSentinel, 1));
    options.fresh_shadow = 0;
    expect_fails<ProvenDesign>(options);
  }
}

struct TwoInboxSlotsWithoutRenewal : TwoInboxSlots {
  struct Rules : TwoInboxSlots::Rules {
    static constexpr bool kClears = false;
    static constexpr bool kRenews = false;
  };
};

// Nobody is misled by an old flag: it is the renewal that needs the third slot.
TEST(ModelControl, FlagsWouldDoWithFewerSlots) {
  for (Method method : {Method::kOneShot, Method::kTwoShot})
    expect_holds_all_the_same<TwoInboxSlotsWithoutRenewal>(
        from_the_start(3, same_steps(8, method, WordKind::kFlag, 1)));
}

TEST(ModelControl, NoClearing) {
  for (Method method : kAllMethods)
    if (!is_pull(method))  // nothing is emptied there
      expect_fails<NoClearing>(options_for(2, same_steps(6, method, WordKind::kSentinel, 1)));
}

TEST(ModelControl, OwnerThatDoesNotWait) {
  for (Method method : {Method::kTwoShot, Method::kTwoShotPull})
    expect_fails<OwnerDoesNotWait>(options_for(2, same_steps(4, method, WordKind::kSentinel, 2)));
}

TEST(ModelControl, OneFlagPerPack) {
  for (Method method : {Method::kOneShot, Method::kTwoShotPull})
    expect_fails<OneFlagPerPack>(options_for(2, same_steps(4, method, WordKind::kFlag, 1)));
}

TEST(ModelControl, PushAndPullSharingMemory) {
  const Fold fold = Fold::kOutboxWithInbox;
  for (WordKind words : kBothKinds) {
    std::vector<ModelStep> steps;
    for (uint32_t i = 0; i < 8; ++i)
      steps.push_back({i % 2 ? Method::kOneShotPull : Method::kOneShot, words, 1});
    ModelOptions options = from_the_start(2, std::move(steps));
    options.fold = &fold;
    expect_fails<ProvenDesign>(options);
  }
}

TEST(ModelControl, SentinelsAndFlagsSharingMemory) {
  const Fold fold = Fold::kFlagsWithSentinels;
  for (Method method : {Method::kOneShot, Method::kOneShotPull}) {
    std::vector<ModelStep> steps;
    for (uint32_t i = 0; i < 8; ++i) steps.push_back({method, kBothKinds[i / 2 % 2], 1});
    ModelOptions options = from_the_start(2, std::move(steps));
    options.fold = &fold;
    expect_fails<ProvenDesign>(options);
  }
}

// Zeros are a flag: had they not been renewed long before, the wrap would make them arrive.
TEST(ModelControl, FreshFlagsAtTheWrap) {
  for (Method method : {Method::kOneShot, Method::kOneShotPull}) {
    ModelOptions options = options_for(2, same_steps(4, method, WordKind::kFlag, 2));
    options.fresh = true;
    expect_fails<ProvenDesign>(options);
  }
}

}  // namespace
}  // namespace onehop::test
