// Flag words are not emptied after use; one pack per operation is renewed in rotation instead.
#include <gtest/gtest.h>

#include "test/protocol/ranks.hpp"
#include "test/protocol/schedule.hpp"

namespace onehop::test {
namespace {

/// One of several workers that are called one after another.
struct OneOf {
  uint32_t index, count;
  uint32_t block() const { return 0; }
  uint32_t blocks() const { return 1; }
  bool is_keeper() const { return index == 0; }
  bool is_worker() const { return true; }
  uint32_t worker() const { return index; }
  uint32_t workers() const { return count; }
  void sync() const {}
};

class Sweep : public testing::TestWithParam<uint32_t> {};

// From wherever the turn stands, also with a capacity that is a multiple of the slots and with fewer workers
// than ranks.
TEST_P(Sweep, RenewsEveryPackOfEverySlotInOneRound) {
  const uint32_t capacity = GetParam(), ranks = 4, me = 1;
  const InboxLayout layout{ranks, capacity};
  constexpr uint32_t kOld = 0xABCD0123;
  for (uint32_t workers : {1u, 2u, 3u, 16u}) {
    for (uint32_t start = 0; start < kSlots * capacity; ++start) {
      std::vector<Pack> inbox(layout.bytes() / sizeof(Pack), Pack{{kOld, kOld, kOld, kOld}});
      CommView comm;
      comm.rank = me;
      comm.ranks = ranks;
      comm.layout = layout;
      comm.inbox(me) = reinterpret_cast<unsigned char*>(inbox.data());
      Turn turn = first_turn();
      for (uint32_t k = 0; k < start; ++k) turn = turn_after(turn, 0, capacity);
      HostMemory memory;
      for (uint32_t k = 0; k < kSlots * capacity; ++k) {
        for (uint32_t w = 0; w < workers; ++w)
          clear_previous<ProvenRules, kMaxRanks>(memory, OneOf{w, workers}, comm, turn);
        renew_flags<ProvenRules>(memory, comm, turn);
        turn = turn_after(turn, 0, capacity);
      }
      for (uint32_t slot = 0; slot < kSlots; ++slot)
        for (uint32_t source = 0; source < ranks; ++source)
          for (uint32_t i = 0; i < 2 * capacity; ++i) {
            const Pack& pack = inbox[layout.region(WordKind::kFlag, slot, source) + i];
            for (uint32_t flag : {pack.word[1], pack.word[3]})
              ASSERT_EQ(flag == kOld, source == me)
                  << "slot " << slot << " source " << source << " pack " << i << " of capacity " << capacity
                  << ", " << workers << " workers, start " << start;
          }
      for (size_t i = 0; i < layout.sentinel_bytes() / sizeof(Pack); ++i)
        ASSERT_EQ(inbox[i].word[0], kOld) << "the sweep touched the sentinel area";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Capacities, Sweep, testing::Values(1, 2, 3, 4, 5, 6, 8, 9, 12));

/// All flag words beyond the first pack hold `epoch`, which comes one round of the sweep later. The operation
/// of that epoch uses them all, and rank 0 is late with each pack.
template <class Protocol>
Outcome run_into_stale_flags(uint32_t epoch, bool plant) {
  constexpr uint32_t kCapacity = 6, kRanks = 3, kRound = kSlots * kCapacity;
  Script script;
  for (uint32_t k = 0; k < kRound; ++k) script.push_back(plain_step(Element::kUint32, 4, kRanks, k));
  script.push_back(plain_step(Element::kUint32, 4 * kCapacity, kRanks, kRound));
  script.push_back(plain_step(Element::kUint32, 4, kRanks, kRound + 1));
  constexpr uint32_t kSendsOfOnePack = (kRanks - 1) * FlagWords::kPacks;
  uint32_t sends = 0;
  Progress progress;
  HookedFabric fabric([&](Touch touch, uint32_t rank, uint32_t k) {
    if (touch == Touch::kSent) progress.note_sent(rank, k);
    if (k != kRound || rank != 0 || touch != Touch::kSend) return;
    if (sends++ % kSendsOfOnePack != 0 || sends == 1) return;
    // Rank 1 can go on to its next operation only if it believes old flags.
    wait_for([&] { return progress.has_sent(1, k + 1); },
             std::chrono::milliseconds(sends > kSendsOfOnePack + 1 ? 10 : 100));
  });
  RanksOptions options;
  options.ranks = kRanks;
  options.capacity = kCapacity;
  options.first = turn_at(epoch - kRound);
  Ranks<HookedFabric, Protocol> ranks(fabric, script, options);
  for (uint32_t r = 0; plant && r < kRanks; ++r) {
    const CommView& comm = ranks.comm(r);
    Pack* packs = reinterpret_cast<Pack*>(comm.inbox(r));
    for (uint32_t slot = 0; slot < kSlots; ++slot)
      for (uint32_t source = 0; source < kRanks; ++source)
        for (uint32_t i = 2; i < 2 * kCapacity; ++i)
          packs[comm.layout.region(WordKind::kFlag, slot, source) + i] = {{666, epoch, 666, epoch}};
  }
  return ranks.run();
}

struct NoRenewal : ProvenRules {
  static constexpr bool kClears = false;
};

TEST(StaleFlag, IsGoneBeforeItCouldMatch) {
  for (uint32_t epoch : {500u, 501u, 502u}) {
    const Outcome outcome = run_into_stale_flags<Proven>(epoch, true);
    EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  }
}

TEST(StaleFlag, WithoutRenewalIsBelieved) {
  EXPECT_FALSE(run_into_stale_flags<Variant<NoRenewal>>(500, true).problems.empty());
}

// Fresh memory holds flag 0, which is an epoch at the wrap.
TEST(StaleFlag, FreshMemoryIsNoEpochAtTheWrap) {
  const Outcome outcome = run_into_stale_flags<Proven>(0, false);
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
  EXPECT_FALSE(run_into_stale_flags<Variant<NoRenewal>>(0, false).problems.empty());
}

}  // namespace
}  // namespace onehop::test
