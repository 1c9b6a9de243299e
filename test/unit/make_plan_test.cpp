// The plan of a communicator: which methods, for which sizes, in how much memory, or why none.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "plugin/plan.hpp"

namespace onehop::test {
namespace {

constexpr StagingKind kDevice = StagingKind::kPeer, kHost = StagingKind::kHost;

struct AlgoRow {
  Algo algo;
  std::optional<Method> in_device, in_host;
};

/// What each name means. Written out, not derived.
const AlgoRow kPins[] = {
    {Algo::kOneShot, Method::kOneShot, Method::kOneShotPull},
    {Algo::kTwoShot, Method::kTwoShot, Method::kTwoShotPull},
    {Algo::kOneShotPush, Method::kOneShot, std::nullopt},
    {Algo::kTwoShotPush, Method::kTwoShot, std::nullopt},
    {Algo::kOneShotStaged, Method::kOneShotStaged, std::nullopt},
    {Algo::kTwoShotStaged, Method::kTwoShotStaged, std::nullopt},
    {Algo::kOneShotPull, Method::kOneShotPull, Method::kOneShotPull},
    {Algo::kTwoShotPull, Method::kTwoShotPull, Method::kTwoShotPull},
    {Algo::kIslands, Method::kIslands, std::nullopt},
};

Settings settings_of(Algo algo, uint64_t max_bytes = Settings{}.max_bytes,
                     std::vector<uint8_t> islands = {}) {
  Settings settings;
  settings.algo = algo;
  settings.max_bytes = max_bytes;
  settings.islands = std::move(islands);
  return settings;
}

/// Of `ranks` ranks: two halves, every second rank, each alone, one against the rest.
std::vector<std::vector<uint8_t>> partitions_of(uint32_t ranks) {
  std::vector<std::vector<uint8_t>> all = {{}};
  std::vector<uint8_t> striped, alone, odd;
  for (uint32_t r = 0; r < ranks; ++r) {
    striped.push_back(static_cast<uint8_t>(r % 2));
    alone.push_back(static_cast<uint8_t>(r));
    odd.push_back(r + 1 == ranks ? 1 : 0);
  }
  all.push_back(striped);
  all.push_back(alone);
  if (ranks - 1 <= kMaxHopRanks) all.push_back(odd);
  return all;
}

std::vector<Algo> all_algos() {
  std::vector<Algo> algos = {Algo::kAuto};
  for (const AlgoRow& row : kPins) algos.push_back(row.algo);
  return algos;
}

constexpr uint64_t kSizes[] = {1,      15, 16, 17, 4096, 65536, 131073, 512 << 10, 1 << 20, (8 << 20) - 1,
                               8 << 20};

/// Calls `visit` with every plan there is, for measuring and for guessing.
template <class Visit>
void for_each_plan(Visit&& visit) {
  size_t plans = 0;
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    for (const StagingKind kind : kStagingKinds)
      for (const Algo algo : all_algos())
        for (const MeasureChoice measure : {MeasureChoice::kOff, MeasureChoice::kQuick})
          for (const uint64_t max_bytes : kSizes)
            for (const auto& islands : partitions_of(ranks)) {
              Settings settings = settings_of(algo, max_bytes, islands);
              settings.measure = measure;
              const Result<Plan> plan = make_plan(settings, kind, ranks);
              if (!plan) continue;
              SCOPED_TRACE(std::to_string(ranks) + " ranks, " + name_of(kind) + ", up to " +
                           std::to_string(max_bytes) + ": " + describe(*plan) + ", " +
                           std::to_string(plan->candidate_count) + " candidates, " +
                           std::to_string(plan->islands.runs) + " runs");
              visit(*plan, settings, kind);
              if (testing::Test::HasFailure()) return;
              ++plans;
            }
  EXPECT_GT(plans, 10000u);
}

std::vector<Element> all_elements() {
  std::vector<Element> all;
  for (uint32_t i = 0; i < kElements; ++i) all.push_back(static_cast<Element>(i));
  return all;
}

/// What the largest call of up to `bytes` bytes is served with.
Served served_for(const Plan& plan, Element of, uint64_t bytes) {
  const size_t count = bytes / element_size(of);
  return *decide({count, static_cast<nccl::DataType>(of), nccl::kSum}, plan).served;
}

TEST(MakePlan, EveryNameIsItsMethodForAllSizes) {
  for (uint32_t ranks = 2; ranks <= kMaxHopRanks; ++ranks)
    for (const AlgoRow& row : kPins)
      for (const StagingKind kind : kStagingKinds) {
        const auto wanted = kind == kHost ? row.in_host : row.in_device;
        const Result<Plan> plan = make_plan(settings_of(row.algo), kind, ranks);
        ASSERT_EQ(static_cast<bool>(plan), wanted.has_value()) << static_cast<int>(row.algo) << name_of(kind);
        if (!wanted) {
          EXPECT_NE(plan.reason().find("ONEHOP_ALGO"), std::string::npos) << plan.reason();
          EXPECT_NE(plan.reason().find("device memory"), std::string::npos) << plan.reason();
          continue;
        }
        ASSERT_EQ(plan->count, 1u);
        EXPECT_EQ(plan->ranges[0].method, *wanted);
        EXPECT_EQ(plan->max_bytes(), Settings{}.max_bytes);
      }
}

/// More ranks than one hop can join: islands in device memory, or nothing; and the reason names what was
/// asked for and the number of ranks.
TEST(MakePlan, MoreThanEightRanksTakeIslands) {
  for (uint32_t ranks = kMaxHopRanks + 1; ranks <= kMaxRanks; ++ranks) {
    for (const Algo algo : {Algo::kAuto, Algo::kIslands}) {
      const Result<Plan> plan = make_plan(settings_of(algo), kDevice, ranks);
      ASSERT_TRUE(plan) << ranks;
      EXPECT_EQ(plan->count, 1u);
      EXPECT_EQ(plan->ranges[0].method, Method::kIslands);
      EXPECT_EQ(plan->islands.count, 2u);
    }
    for (const AlgoRow& row : kPins) {
      if (row.algo == Algo::kIslands) continue;
      for (const StagingKind kind : kStagingKinds) {
        const auto method = kind == kHost ? row.in_host : row.in_device;
        const Result<Plan> plan = make_plan(settings_of(row.algo), kind, ranks);
        ASSERT_FALSE(plan) << ranks;
        if (!method) continue;
        EXPECT_EQ(plan.reason().find(name_of(*method)), 0u) << plan.reason();
        EXPECT_NE(plan.reason().find("it has " + std::to_string(ranks)), std::string::npos) << plan.reason();
      }
    }
    const Result<Plan> in_host = make_plan(Settings{}, kHost, ranks);
    ASSERT_FALSE(in_host);
    EXPECT_NE(in_host.reason().find("up to 8 ranks"), std::string::npos) << in_host.reason();
    EXPECT_FALSE(make_plan(settings_of(Algo::kIslands), kHost, ranks));
  }
}

TEST(MakePlan, OneRankAndSeventeenAreNotServed) {
  for (const StagingKind kind : kStagingKinds)
    for (const uint32_t ranks : {0u, 1u, kMaxRanks + 1, UINT32_MAX}) {
      const Result<Plan> plan = make_plan(Settings{}, kind, ranks);
      ASSERT_FALSE(plan) << ranks;
      EXPECT_EQ(plan.reason().find("it has " + std::to_string(ranks) + " rank"), 0u) << plan.reason();
    }
}

TEST(MakePlan, MaxBytesOfNothingIsNoPlan) {
  for (const Algo algo : all_algos())
    for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
      for (const StagingKind kind : kStagingKinds) EXPECT_FALSE(make_plan(settings_of(algo, 0), kind, ranks));
  EXPECT_EQ(make_plan(settings_of(Algo::kAuto, 0), kDevice, 4).reason(), "ONEHOP_MAX_BYTES=0");
}

/// One hop for the small calls, two for the large ones, and never beyond the user's limit.
TEST(MakePlan, AutoHasRangesThatRiseToTheLimit) {
  for (uint32_t ranks = 2; ranks <= kMaxHopRanks; ++ranks)
    for (const StagingKind kind : kStagingKinds)
      for (const uint64_t max_bytes : kSizes) {
        const Plan plan = *make_plan(settings_of(Algo::kAuto, max_bytes), kind, ranks);
        const Method first = kind == kHost ? Method::kOneShotPull : Method::kOneShot,
                     second = kind == kHost ? Method::kTwoShotPull : Method::kTwoShot;
        ASSERT_LE(plan.count, 2u);
        EXPECT_EQ(plan.ranges[0].method, first);
        EXPECT_EQ(plan.max_bytes(), max_bytes);
        if (ranks == 2) {
          EXPECT_EQ(plan.count, 1u) << "with two ranks a second hop only costs";
        } else if (plan.count == 2) {
          EXPECT_LT(plan.ranges[0].max_bytes, plan.ranges[1].max_bytes);
          EXPECT_EQ(plan.ranges[1].method, second);
        } else {
          EXPECT_LE(max_bytes, 128u << 10) << "all in one hop";
        }
      }
}

/// What NCCL does with fp8 is not known before the ranks have told.
TEST(MakePlan, LeavesFp8ToNcclAtFirst) {
  EXPECT_FALSE(make_plan(Settings{}, kDevice, 2)->takes_fp8);
}

TEST(MakePlan, IslandsAreTheUsersWhereTheyFitTheCommunicator) {
  const std::vector<uint8_t> striped = {0, 1, 0, 1, 0, 1};
  const Plan plan = *make_plan(settings_of(Algo::kIslands, 4096, striped), kDevice, 6);
  EXPECT_TRUE(std::equal(striped.begin(), striped.end(), plan.islands.island));
  for (const uint32_t other : {2u, 5u, 7u, 16u}) {
    const Plan halves = *make_plan(settings_of(Algo::kIslands, 4096, striped), kDevice, other);
    const Islands equal = equal_islands(other, 2);
    EXPECT_TRUE(std::equal(equal.island, equal.island + other, halves.islands.island)) << other;
  }
}

/// Ranks compare only the settings that must agree, so nothing else may lead to another plan.
TEST(MakePlan, DependsOnNothingThatRanksDoNotCompare) {
  for_each_plan([](const Plan& plan, const Settings& settings, StagingKind kind) {
    Settings other = settings;
    other.enable = false;
    other.log = LogLevel::kTrace;
    other.log_file = other.stats_file = "x";
    other.stats = true;
    const Plan again = *make_plan(other, kind, plan.layout.ranks);
    EXPECT_EQ(describe(again), describe(plan));
    EXPECT_EQ(again.layout.inbox, plan.layout.inbox);
    EXPECT_EQ(again.layout.outbox, plan.layout.outbox);
    EXPECT_TRUE(std::equal(plan.islands.island, plan.islands.island + kMaxRanks, again.islands.island));
  });
}

TEST(Layouts, StayWithinTheirBudget) {
  for_each_plan([](const Plan& plan, const Settings&, StagingKind) {
    EXPECT_LE(plan.layout.bytes() + plan.layout.shadow_bytes() + sizeof(State), kStagingBudget);
    bool push = false, pull = false;
    for (uint32_t i = 0; i < plan.candidate_count; ++i) (is_pull(plan.candidates[i]) ? pull : push) = true;
    EXPECT_EQ(plan.layout.inbox > 0, push) << "memory for what nobody uses, or none for what is used";
    EXPECT_EQ(plan.layout.outbox > 0, pull) << "memory for what nobody uses, or none for what is used";
    EXPECT_EQ(plan.layout.inbox % 8, 0u) << "regions begin on whole cache lines";
    EXPECT_EQ(plan.layout.outbox % 8, 0u) << "regions begin on whole cache lines";
  });
}

/// A guess may only name what there is memory for.
TEST(Candidates, HoldEveryMethodOfTheGuess) {
  for_each_plan([](const Plan& plan, const Settings& settings, StagingKind kind) {
    const auto begin = plan.candidates.begin(), end = begin + plan.candidate_count;
    ASSERT_GT(plan.candidate_count, 0u);
    for (uint32_t i = 0; i < plan.count; ++i) EXPECT_NE(std::find(begin, end, plan.ranges[i].method), end);
    for (auto at = begin; at != end; ++at) {
      EXPECT_EQ(std::count(begin, end, *at), 1) << name_of(*at);
      EXPECT_TRUE(kind == kDevice || is_pull(*at)) << name_of(*at) << " in host memory";
    }
    if (settings.algo != Algo::kAuto) {
      EXPECT_EQ(plan.candidate_count, 1u) << "a pinned method has no rival";
    }
  });
}

/// Room that an operation of `packs` takes in a region of the inbox, or in the outbox, in packs of payload:
/// what the kernels index, written down apart from largest_operation().
uint64_t room(Method method, uint64_t packs, const Plan& plan, uint32_t wide) {
  const uint64_t ranks = plan.layout.ranks, share = (packs + ranks - 1) / ranks;
  switch (method) {
    case Method::kOneShot:
    case Method::kOneShotStaged:
    case Method::kOneShotPull:
      return packs;
    case Method::kTwoShot:
    case Method::kTwoShotStaged:
      return 2 * share;  // data, and results
    case Method::kTwoShotPull:
      return ranks * share;  // a slice for every owner; the own results lie in the other part
    case Method::kIslands:
      return (packs + plan.islands.smallest - 1) / plan.islands.smallest *
             (2 + uint64_t{wide} *
                      (plan.islands.runs - 1u));  // data, results, and a sum after each run but the last
  }
  return UINT64_MAX;
}

/// A piece of nothing would never end; one that is too large would write over its neighbour. Of every
/// candidate, for any may be found to be the best.
TEST(Pieces, AreNeverEmptyAndFitTheirRegion) {
  for_each_plan([](const Plan& plan, const Settings&, StagingKind) {
    for (uint32_t i = 0; i < plan.candidate_count; ++i)
      for (const Element of : all_elements()) {
        const Method method = plan.candidates[i];
        const WordKind kind = word_kind(of);
        const uint32_t packs = largest_operation(method, plan.layout, kind, plan.islands, wide_packs(of));
        ASSERT_GT(packs, 0u) << name_of(method) << ", element " << static_cast<int>(of);
        EXPECT_LE(room(method, packs, plan, wide_packs(of)),
                  is_pull(method) ? plan.layout.outbox_capacity(kind) : plan.layout.inbox_capacity(kind))
            << name_of(method) << ", element " << static_cast<int>(of);
      }
  });
}

TEST(Pieces, AreWholePacks) {
  for_each_plan([](const Plan& made, const Settings&, StagingKind) {
    Plan plan = made;
    plan.takes_fp8 = true;
    for (const Element of : all_elements())
      for (const uint64_t bytes : {uint64_t{8}, plan.max_bytes()}) {
        if (bytes > plan.max_bytes() || bytes < 8) continue;
        const Served served = served_for(plan, of, bytes);
        ASSERT_GT(served.piece, 0u) << static_cast<int>(of);
        EXPECT_EQ(served.piece * element_size(of) % sizeof(Pack), 0u)
            << "the next piece would begin within a pack";
      }
  });
}

/// Pieces cost a launch each, so a call is divided only where the budget leaves no choice.
TEST(Pieces, AreWholeCallsWhereTheBudgetAllows) {
  for_each_plan([](const Plan& plan, const Settings&, StagingKind) {
    if (plan.layout.bytes() + plan.layout.shadow_bytes() > kStagingBudget / 8 * 7 ||
        plan.layout.inbox * plan.layout.outbox > 0)
      return;
    for (uint32_t range = 0; range < plan.count; ++range)
      for (const Element common : {Element::kFloat16, Element::kFloat32, Element::kBfloat16}) {
        const uint64_t bytes = plan.ranges[range].max_bytes;
        if (bytes < element_size(common)) continue;
        EXPECT_GE(served_for(plan, common, bytes).piece, bytes / element_size(common))
            << static_cast<int>(common);
      }
  });
}

TEST(Pieces, OfTheDefaultLimitAreFew) {
  for (uint32_t ranks = 2; ranks <= kMaxHopRanks; ++ranks)
    for (const StagingKind kind : kStagingKinds) {
      const Plan plan = *make_plan(Settings{}, kind, ranks);
      const Served served = served_for(plan, Element::kBfloat16, plan.max_bytes());
      EXPECT_GE(2 * served.piece * 2, plan.max_bytes())  // two pieces at most
          << ranks << " ranks, " << name_of(kind);
    }
}

TEST(Needs, AllPeersButForIslands) {
  for_each_plan([](const Plan& plan, const Settings&, StagingKind) {
    const bool islands = plan.candidate_count == 1 && plan.candidates[0] == Method::kIslands;
    for (uint32_t a = 0; a < plan.layout.ranks; ++a)
      for (uint32_t b = 0; b < plan.layout.ranks; ++b) {
        EXPECT_EQ(plan.needs(a, b), islands ? are_partners(plan.islands, a, b) : a != b) << a << ", " << b;
        EXPECT_EQ(plan.needs(a, b), plan.needs(b, a)) << a << ", " << b;
      }
  });
  // One candidate that needs all peers is enough.
  Plan mixed = *make_plan(settings_of(Algo::kIslands), kDevice, 8);
  EXPECT_FALSE(mixed.needs(0, 5));
  mixed.candidates[mixed.candidate_count++] = Method::kTwoShot;
  EXPECT_TRUE(mixed.needs(0, 5));
}

TEST(Describe, NamesEachMethodAndItsLimit) {
  EXPECT_EQ(describe(*make_plan(Settings{}, kDevice, 2)), "one-shot push up to 524288 bytes");
  EXPECT_EQ(describe(*make_plan(Settings{}, kDevice, 4)),
            "one-shot push up to 131072 bytes, two-shot push up to 524288 bytes");
  EXPECT_EQ(describe(*make_plan(Settings{}, kHost, 8)),
            "one-shot pull up to 8192 bytes, two-shot pull up to 524288 bytes");
  EXPECT_EQ(describe(*make_plan(Settings{}, kDevice, 12)), "islands up to 524288 bytes");
  EXPECT_EQ(describe(*make_plan(settings_of(Algo::kOneShotStaged, 100), kDevice, 3)),
            "one-shot staged up to 100 bytes");
  EXPECT_EQ(describe(Plan{}), "");
  Plan plan;
  plan.add(64, std::nullopt);
  plan.add(4096, Method::kIslands);
  EXPECT_EQ(describe(plan), "NCCL up to 64 bytes, islands up to 4096 bytes");
}

}  // namespace
}  // namespace onehop::test
