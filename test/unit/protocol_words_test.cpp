// Words, and the places they have in staging memory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/protocol/float8.hpp"
#include "kernels/protocol/turn.hpp"
#include "kernels/protocol/words.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

bool same(const Pack& a, const Pack& b) {
  return std::memcmp(&a, &b, sizeof(Pack)) == 0;
}

/// Whether each value of the format within the word is a NaN.
bool all_nans(uint32_t word, const SmallFormat& format) {
  const uint32_t bits = 1 + format.exponent_bits + format.fraction_bits;
  for (uint32_t at = 0; at < 32; at += bits)
    if (!std::isnan(format.widen(static_cast<uint16_t>(word >> at & ((1u << bits) - 1))))) return false;
  return true;
}

TEST(SentinelWords, TheWordSentInsteadIsANanInEveryType) {
  const uint32_t other = SentinelWords::kOtherNan;
  float value;
  std::memcpy(&value, &other, sizeof(value));
  EXPECT_TRUE(std::isnan(value));
  for (const SmallFormat& format : {kHalf, kBrain, kE5m2}) EXPECT_TRUE(all_nans(other, format));
  EXPECT_TRUE(all_nans(SentinelWordsOfE4m3::kOtherNan, kE4m3));
  EXPECT_NE(SentinelWordsOfE4m3::kOtherNan, SentinelWordsOfE4m3::kEmpty);
  EXPECT_FALSE(all_nans(other, kE4m3)) << "that is why e4m3 has another";
}

TEST(SentinelWords, EachTypeUsesItsOwn) {
  const auto sent_for = []<class Type>(const Type&) {
    return Type::Words::sendable({{~0u, 1, ~0u - 1, ~0u}});
  };
  const Pack others{{0xFFFFFFFE, 1, 0xFFFFFFFE, 0xFFFFFFFE}};
  EXPECT_TRUE(same(sent_for(Float32{}), others));
  EXPECT_TRUE(same(sent_for(Float16{}), others));
  EXPECT_TRUE(same(sent_for(Bfloat16{}), others));
  EXPECT_TRUE(same(sent_for(Float8e5m2{}), others));
  // 0xFFFFFFFE holds a number here, which must arrive.
  EXPECT_TRUE(same(sent_for(Float8e4m3{}), {{0xFFFFFF7F, 1, 0xFFFFFFFE, 0xFFFFFF7F}}));
}

TEST(SentinelWords, OnlyAllOnesIsReplaced) {
  const Pack payload{{0xFFFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFF0000}};
  EXPECT_TRUE(same(SentinelWords::sendable(payload), {{0xFFFFFFFE, 0x80000000, 0xFFFFFFFE, 0xFFFF0000}}));
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto word = [&] { return static_cast<uint32_t>(random.next()) & 0xFFFFFFFE; };
    const Pack other{{word(), word(), word(), word()}};
    EXPECT_TRUE(same(SentinelWords::sendable(other), other));
  }
}

TEST(SentinelWords, ArriveOneByOne) {
  const Pack payload = SentinelWords::sendable({{0xFFFFFFFF, 0, 2, 3}});
  const SentinelWords::Line sent = SentinelWords::encode(payload, 7);
  for (uint32_t landed = 0; landed < 16; ++landed) {
    SentinelWords::Line line;
    for (uint32_t i = 0; i < 4; ++i)
      line.pack[0].word[i] = landed >> i & 1 ? sent.pack[0].word[i] : SentinelWords::kEmpty;
    EXPECT_EQ(arrived<SentinelWords>(line, 7), landed == 15);
  }
  EXPECT_TRUE(same(SentinelWords::decode(sent), payload));
}

TEST(FlagWords, ArriveHalfByHalf) {
  const Pack payload{{0xFFFFFFFF, 0, 2, 3}};
  for (uint32_t epoch : {0u, 1u, 0xFFFFFFFFu}) {
    const FlagWords::Line sent = FlagWords::encode(payload, epoch);
    for (uint32_t landed = 0; landed < 16; ++landed) {
      FlagWords::Line line = FlagWords::encode({{9, 9, 9, 9}}, epoch - kInboxSlots);
      for (uint32_t half = 0; half < 4; ++half)
        for (uint32_t word = 2 * (half % 2); landed >> half & 1 && word < 2 * (half % 2) + 2; ++word)
          line.pack[half / 2].word[word] = sent.pack[half / 2].word[word];
      EXPECT_EQ(arrived<FlagWords>(line, epoch), landed == 15) << landed;
    }
    EXPECT_TRUE(same(FlagWords::decode(sent), payload));
    EXPECT_TRUE(same(FlagWords::sendable(payload), payload));
  }
}

TEST(Layout, EveryPackHasOnePlace) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (uint32_t inbox : {0u, 1u, 3u, 16u})
      for (uint32_t outbox : {0u, 1u, 2u, 17u}) {
        const Layout layout{ranks, inbox, outbox};
        std::vector<int> uses(layout.bytes() / sizeof(Pack));
        const auto use = [&](WordKind kind, uint32_t region, uint32_t packs) {
          for (uint32_t at = region; at < region + packs; ++at) {
            ASSERT_LT(at, uses.size());
            EXPECT_EQ(at < layout.sentinel_bytes() / sizeof(Pack), kind == WordKind::kSentinel);
            ++uses[at];
          }
        };
        for (WordKind kind : {WordKind::kSentinel, WordKind::kFlag}) {
          for (uint32_t slot = 0; slot < kInboxSlots; ++slot)
            for (uint32_t source = 0; source < ranks; ++source)
              use(kind, layout.inbox_region(kind, slot, source), inbox);
          for (uint32_t slot = 0; slot < Layout::outbox_slots(kind); ++slot)
            use(kind, layout.outbox_region(kind, slot), 2 * outbox);
        }
        for (int times : uses) ASSERT_EQ(times, 1);
      }
}

TEST(Layout, EveryShadowHasOnePlace) {
  for (uint32_t ranks = 1; ranks <= kMaxHopRanks; ++ranks)
    for (uint32_t outbox : {0u, 1u, 7u, 16u}) {
      const Layout layout{ranks, 5, outbox};
      std::vector<int> uses(layout.shadow_bytes() / sizeof(Pack));
      const auto use = [&](uint32_t begin, uint32_t packs) {
        for (uint32_t at = begin; at < begin + packs; ++at) ++uses.at(at);
      };
      for (uint32_t slot = 0; slot < kChangeSlots; ++slot) {
        use(layout.own_shadow(slot), 2 * outbox);
        for (uint32_t r = 0; r < ranks; ++r)
          use(layout.shadow_of(slot, r), layout.outbox_slice(WordKind::kSentinel) + outbox);
      }
      for (int times : uses) ASSERT_EQ(times, 1);
    }
}

TEST(Layout, CapacityIsWhatARegionHolds) {
  const Layout layout{4, 7, 9};
  EXPECT_EQ(layout.inbox_capacity(WordKind::kSentinel), 7u);
  EXPECT_EQ(layout.inbox_capacity(WordKind::kFlag), 3u);
  EXPECT_EQ(layout.outbox_capacity(WordKind::kSentinel), 9u);
  EXPECT_EQ(layout.outbox_capacity(WordKind::kFlag), 4u);
}

TEST(Turn, SlotsGoRoundThroughTheWrapOfTheEpoch) {
  Turn turn{0xFFFFFFFE, 1, 0, 0};
  for (uint32_t k = 0; k < 7; ++k) {
    EXPECT_EQ(turn.epoch, 0xFFFFFFFE + k);
    EXPECT_EQ(turn.slot, (1 + k) % kInboxSlots);
    const Turn next = turn_after(turn, 5 + k);
    EXPECT_EQ(slot_before(next.slot), turn.slot);
    for (WordKind kind : {WordKind::kSentinel, WordKind::kFlag})
      EXPECT_EQ(outbox_slot(kind, next.epoch),
                (outbox_slot(kind, turn.epoch) + 1) % Layout::outbox_slots(kind));
    EXPECT_EQ(next.left, 5 + k);
    turn = next;
  }
}

// Flag words are not emptied.
TEST(Turn, KnowsWhatIsLeft) {
  EXPECT_EQ(left_in_inbox<SentinelWords>(9), 9u);
  EXPECT_EQ(left_in_inbox<FlagWords>(9), 0u);
}

}  // namespace
}  // namespace onehop::test
