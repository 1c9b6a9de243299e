// Who is probed with whom, and when.
#include "plugin/setup/probe.hpp"

#include <gtest/gtest.h>

#include "kernels/protocol/layout.hpp"

namespace onehop::test {
namespace {

TEST(ProbePartner, EveryPairMeetsOnce) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
    std::vector<uint32_t> meetings(ranks * ranks, 0);
    for (uint32_t round = 0; round < probe_rounds(ranks); ++round)
      for (uint32_t rank = 0; rank < ranks; ++rank)
        if (const int partner = probe_partner(rank, ranks, round); partner >= 0)
          ++meetings[rank * ranks + static_cast<uint32_t>(partner)];
    for (uint32_t a = 0; a < ranks; ++a)
      for (uint32_t b = 0; b < ranks; ++b)
        EXPECT_EQ(meetings[a * ranks + b], a == b ? 0u : 1u) << ranks << " ranks: " << a << " and " << b;
  }
}

TEST(ProbePartner, IsMutualAndAnother) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (uint32_t round = 0; round < probe_rounds(ranks); ++round)
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const int partner = probe_partner(rank, ranks, round);
        SCOPED_TRACE(std::to_string(ranks) + " ranks, round " + std::to_string(round) + ", rank " +
                     std::to_string(rank) + ": " + std::to_string(partner));
        ASSERT_LT(partner, static_cast<int>(ranks));
        ASSERT_NE(partner, static_cast<int>(rank));
        if (partner < 0) continue;
        ASSERT_EQ(probe_partner(static_cast<uint32_t>(partner), ranks, round), static_cast<int>(rank));
      }
}

/// An even number leaves nobody out, an odd number one in each round.
TEST(ProbePartner, RoundsAreAsFewAsCanBe) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
    EXPECT_EQ(probe_rounds(ranks), ranks - 1 + ranks % 2);
    for (uint32_t round = 0; round < probe_rounds(ranks); ++round) {
      uint32_t alone = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) alone += probe_partner(rank, ranks, round) < 0;
      EXPECT_EQ(alone, ranks % 2) << ranks << " ranks, round " << round;
    }
  }
}

}  // namespace
}  // namespace onehop::test
