// Flag words are not emptied after use; one line per operation and region is renewed in rotation instead.
#include <gtest/gtest.h>

#include "test/protocol/broken.hpp"
#include "test/protocol/ranks.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

constexpr uint32_t kRanks = 4, kMe = 1, kOld = 0xABCD0123;
/// Operations in which all lines of an outbox are renewed: both parts of each slot, of `lines` lines each.
constexpr uint32_t outbox_round(uint32_t lines) {
  return kFlagSlots * 2 * lines;
}
constexpr uint32_t kLinePacks = Layout::expansion(WordKind::kFlag);

/// One rank's memory, all of it old.
class OldMemory {
 public:
  explicit OldMemory(uint32_t inbox_lines, uint32_t outbox_lines)
      : layout_{kRanks, inbox_lines * kLinePacks, outbox_lines * kLinePacks},
        packs_(layout_.bytes() / sizeof(Pack), Pack{{kOld, kOld, kOld, kOld}}) {
    comm_.rank = kMe;
    comm_.ranks = kRanks;
    comm_.layout = layout_;
    comm_.own = reinterpret_cast<unsigned char*>(packs_.data());
  }

  /// What `operations` operations do to old words, beginning with `turn`.
  void run(Turn turn, uint32_t operations) {
    HostMemory memory;
    for (uint32_t k = 0; k < operations; ++k) {
      clear_old_words<ProvenRules, kMaxRanks>(memory, SingleThread{}, comm_, turn);
      renew_flags<ProvenRules>(memory, comm_, turn);
      turn = turn_after(turn, 0);
    }
  }

  /// Old lines: in the inbox of each peer's region, and in the outbox.
  uint32_t old_in_inbox() const {
    uint32_t old = 0;
    for (uint32_t slot = 0; slot < kInboxSlots; ++slot)
      for (uint32_t source = 0; source < kRanks; ++source)
        if (source != kMe)
          old += old_lines(layout_.inbox_region(WordKind::kFlag, slot, source), layout_.inbox);
    return old;
  }
  uint32_t old_in_outbox() const {
    uint32_t old = 0;
    for (uint32_t slot = 0; slot < kFlagSlots; ++slot)
      old += old_lines(layout_.outbox_region(WordKind::kFlag, slot), 2 * layout_.outbox);
    return old;
  }

  /// Whether nothing but flag words that others rely on was touched.
  bool all_else_is_old() const {
    uint32_t touched = 0;
    for (size_t i = 0; i < layout_.sentinel_bytes() / sizeof(Pack); ++i) touched += !is_old(packs_[i]);
    for (uint32_t slot = 0; slot < kInboxSlots; ++slot)
      for (uint32_t i = 0; i < layout_.inbox; ++i)
        touched += !is_old(packs_[layout_.inbox_region(WordKind::kFlag, slot, kMe) + i]);
    return touched == 0;
  }

 private:
  static bool is_old(const Pack& pack) { return pack.word[1] == kOld || pack.word[3] == kOld; }
  uint32_t old_lines(uint32_t begin, uint32_t packs) const {
    uint32_t old = 0;
    for (uint32_t i = 0; i < packs; i += kLinePacks)
      old += is_old(packs_[begin + i]) || is_old(packs_[begin + i + 1]);
    return old;
  }

  Layout layout_;
  std::vector<Pack> packs_;
  CommView comm_;
};

class Sweep : public testing::TestWithParam<uint32_t> {};

// From wherever the turn stands, also with a capacity that is a multiple of the slots.
TEST_P(Sweep, RenewsEveryLineOfEverySlotInOneRound) {
  const uint32_t lines = GetParam();
  for (uint32_t start = 1; start <= kInboxSlots * outbox_round(lines); ++start) {
    OldMemory inbox(lines, 1);
    inbox.run(turn_at(start), kInboxSlots * lines - 1);
    ASSERT_EQ(inbox.old_in_inbox(), kRanks - 1) << "one line of one slot is left, start " << start;
    inbox.run(turn_at(start + kInboxSlots * lines - 1), 1);
    ASSERT_EQ(inbox.old_in_inbox(), 0u) << "start " << start;
    ASSERT_TRUE(inbox.all_else_is_old());

    OldMemory outbox(1, lines);
    outbox.run(turn_at(start), outbox_round(lines) - 1);
    ASSERT_EQ(outbox.old_in_outbox(), 1u) << "start " << start;
    outbox.run(turn_at(start + outbox_round(lines) - 1), 1);
    ASSERT_EQ(outbox.old_in_outbox(), 0u) << "start " << start;
    ASSERT_TRUE(outbox.all_else_is_old());
  }
}

// The rotation begins anew at the wrap, wherever it stands.
TEST_P(Sweep, TakesAtMostOneRoundMoreAcrossTheWrap) {
  const uint32_t lines = GetParam();
  for (uint32_t before = 0; before < 2 * outbox_round(lines); ++before)
    for (uint32_t slot = 0; slot < kInboxSlots; ++slot) {
      OldMemory memory(lines, lines);
      memory.run(Turn{0u - before, slot, 0, 0}, 2 * kInboxSlots * lines);
      ASSERT_EQ(memory.old_in_inbox(), 0u) << before << " operations before the wrap";
      memory.run(Turn{0u - before + 2 * kInboxSlots * lines, slot, 0, 0},
                 2 * (outbox_round(lines) - kInboxSlots * lines));
      ASSERT_EQ(memory.old_in_outbox(), 0u) << before << " operations before the wrap";
    }
}

INSTANTIATE_TEST_SUITE_P(Lines, Sweep, testing::Values(1, 2, 3, 4, 5, 6, 8, 9, 12));

TEST(SweepAcrossTheWrap, OneRoundIsNotAlwaysEnough) {
  constexpr uint32_t kLines = 5;
  bool enough = true;
  for (uint32_t before = 1; before < kInboxSlots * kLines; ++before) {
    OldMemory memory(kLines, kLines);
    memory.run(Turn{0u - before, 0, 0, 0}, kInboxSlots * kLines);
    enough &= memory.old_in_inbox() == 0;
  }
  EXPECT_FALSE(enough);
}

/// All flag words beyond the first line of a part hold `epoch`, which comes one round of the sweep later. The
/// operation of that epoch uses them all, and rank 0 is late with each line.
template <class Design>
Outcome run_into_stale_flags(Method method, uint32_t epoch, bool plant) {
  constexpr uint32_t kLines = 6, kCount = 3;
  const uint32_t round = is_pull(method) ? outbox_round(kLines) : kInboxSlots * kLines;
  Script script;
  for (uint32_t k = 0; k < round; ++k) script.push_back(plain_step(Element::kUint32, 4, kCount, k, method));
  script.push_back(plain_step(Element::kUint32, 4 * kLines, kCount, round, method));
  script.push_back(plain_step(Element::kUint32, 4, kCount, round + 1, method));
  const uint32_t sends_of_one_line = (is_pull(method) ? 1 : kCount - 1) * FlagWords::kPacks;
  uint32_t sends = 0;
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (k != round || rank != 0 || touch != Touch::kSend) return;
    if (sends++ % sends_of_one_line != 0 || sends == 1) return;
    // Rank 1 can go on to its next operation only if it believes old flags.
    wait_for([&] { return progress.has_sent(1, k + 1); },
             std::chrono::milliseconds(sends > sends_of_one_line + 1 ? 10 : 100));
  });
  RanksOptions options;
  options.layout = {kCount, kLines * kLinePacks, kLines * kLinePacks};
  options.first = turn_at(epoch - round);
  Ranks<HookedFabric, Variant<Design>> ranks(fabric, script, options);
  for (uint32_t r = 0; plant && r < kCount; ++r) {
    const Layout& layout = ranks.comm(r).layout;
    Pack* packs = reinterpret_cast<Pack*>(ranks.comm(r).own);
    const auto plant_in = [&](uint32_t region) {
      for (uint32_t i = kLinePacks; i < kLines * kLinePacks; ++i)
        packs[region + i] = {{666, epoch, 666, epoch}};
    };
    for (uint32_t slot = 0; slot < kInboxSlots; ++slot)
      for (uint32_t source = 0; source < kCount; ++source)
        plant_in(layout.inbox_region(WordKind::kFlag, slot, source));
    for (uint32_t slot = 0; slot < kFlagSlots; ++slot)  // in the part that all read
      plant_in(layout.outbox_region(WordKind::kFlag, slot) + layout.outbox);
  }
  return ranks.run();
}

class StaleFlag : public testing::TestWithParam<Method> {};

TEST_P(StaleFlag, IsGoneBeforeItCouldMatch) {
  for (uint32_t epoch : {500u, 501u, 502u, 503u}) {
    const Outcome outcome = run_into_stale_flags<ProvenDesign>(GetParam(), epoch, true);
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  }
}

TEST_P(StaleFlag, WithoutRenewalIsBelieved) {
  EXPECT_FALSE(run_into_stale_flags<NoClearing>(GetParam(), 500, true).problems.empty());
}

// Fresh memory holds flag 0, which is an epoch at the wrap.
TEST_P(StaleFlag, FreshMemoryIsNoEpochAtTheWrap) {
  const Outcome outcome = run_into_stale_flags<ProvenDesign>(GetParam(), 0, false);
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_FALSE(run_into_stale_flags<NoClearing>(GetParam(), 0, false).problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Methods, StaleFlag, testing::Values(Method::kOneShot, Method::kOneShotPull),
                         [](const auto& parameter) { return is_pull(parameter.param) ? "pull" : "push"; });

}  // namespace
}  // namespace onehop::test
