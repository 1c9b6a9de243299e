// What is chosen on modelled fabrics: from exact times, and from noisy ones that are taken as
// plugin/setup/measure.cpp takes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "plugin/measure/choose.hpp"
#include "plugin/setup/measure.hpp"

namespace onehop::test {
namespace {

constexpr uint64_t kMaxBytes = 512 << 10;

/// Bandwidths in bytes per us; 1000 are 1 GB/s.
struct Fabric {
  const char* name = "";
  uint32_t ranks = 8;
  double hop_us = 2;           ///< until a written word is seen
  double read_hop_us = 3;      ///< until a published word is read
  double write_one = 52'000;   ///< one stream out of and into each GPU
  double write_many = 52'000;  ///< all to all
  double read = 52'000;        ///< all from all
  double crossing = 0;         ///< of all words from one half of the ranks to the other; 0: as good as any
  double nccl_us = 200;
  double nccl_bytes_per_us = 40'000;
};

/// Time of one call.
double time_of(const Fabric& f, std::optional<Method> method, double bytes) {
  const double n = f.ranks, half = n / 2, one_shot = (n - 1) * bytes, two_shot = 2 * (n - 1) / n * bytes;
  if (!method) return f.nccl_us + two_shot / f.nccl_bytes_per_us;
  // Each rank of a half sends so much to each of the other.
  const auto moved = [&](double port_bytes, double bandwidth, double across_each) {
    const double across = f.crossing == 0 ? 0 : half * half * across_each / f.crossing;
    return std::max(port_bytes / bandwidth, across);
  };
  switch (*method) {
    case Method::kOneShot:
      return f.hop_us + moved(one_shot, f.write_many, bytes);
    case Method::kTwoShot:
      return 2 * f.hop_us + moved(two_shot, f.write_many, 2 * bytes / n);
    case Method::kOneShotStaged:
      return (n - 1) * f.hop_us + moved(one_shot, f.write_one, bytes);
    case Method::kTwoShotStaged:
      return 2 * (n - 1) * f.hop_us + moved(two_shot, f.write_one, 2 * bytes / n);
    case Method::kOneShotPull:
      return f.read_hop_us + moved(one_shot, f.read, bytes);
    case Method::kTwoShotPull:
      return 2 * f.read_hop_us + moved(two_shot, f.read, 2 * bytes / n);
    case Method::kIslands:
      // Slices to the mates and results back; across, each rank sends to one: its slice's sum or result,
      // twice as wide in one direction.
      return 4 * f.hop_us +
             std::max(2 * (half - 1) / half * bytes / f.write_many,
                      f.crossing == 0 ? 2 * bytes / half / f.write_many : 2 * bytes / f.crossing);
  }
  return 0;
}

const Fabric kSwitch = {.name = "one switch"};
const Fabric kCollapse = {
    .name = "posted writes that collapse", .write_one = 26'000, .write_many = 2'600, .read = 52'000};
const Fabric kRootComplex = {.name = "a root complex",
                             .hop_us = 1.5,
                             .write_one = 25'000,
                             .write_many = 5'000,
                             .read = 4'000,
                             .nccl_bytes_per_us = 10'000};
const Fabric kTwoSockets = {.name = "two sockets",
                            .hop_us = 2,
                            .write_one = 25'000,
                            .write_many = 25'000,
                            .read = 25'000,
                            .crossing = 12'000,
                            .nccl_bytes_per_us = 10'000};
const Fabric kPair = {.name = "two GPUs", .ranks = 2, .nccl_us = 25};
/// NCCL is the faster one from the middle of the sizes on.
const Fabric kSlowPair = {.name = "two GPUs on a slow link",
                          .ranks = 2,
                          .write_one = 5'000,
                          .write_many = 5'000,
                          .read = 5'000,
                          .nccl_us = 25,
                          .nccl_bytes_per_us = 12'000};
const Fabric kNoUse = {.name = "NCCL is as fast", .ranks = 2, .nccl_us = 1.5, .nccl_bytes_per_us = 52'000};
const Fabric kFabrics[] = {kSwitch, kCollapse, kRootComplex, kTwoSockets, kPair, kSlowPair, kNoUse};

/// Seconds of measuring that take no time: what measure.cpp does, with `time` for each sample.
Plan measured(const Fabric& f, const std::function<double(double)>& sample) {
  Settings settings;
  settings.measure = MeasureChoice::kQuick;
  settings.max_bytes = kMaxBytes;
  Plan plan = *make_plan(settings, StagingKind::kPeer, f.ranks);
  const Effort effort = effort_for(MeasureChoice::kQuick, kMaxBytes);
  const auto slowest_median = [&](std::optional<Method> method, uint64_t bytes, uint32_t samples) {
    double slowest = 0;
    for (uint32_t rank = 0; rank < f.ranks; ++rank) {
      std::vector<double> times;
      for (uint32_t s = 0; s < samples; ++s)
        times.push_back(sample(time_of(f, method, static_cast<double>(bytes))));
      std::sort(times.begin(), times.end());
      slowest = std::max(slowest, times[samples / 2]);
    }
    return slowest;
  };

  const std::vector<uint64_t>& sizes = effort.sizes;
  Timings few{{sizes[0], sizes[(sizes.size() - 1) / 2], sizes.back()}, {}};
  for (uint32_t c = 0; c < plan.candidate_count; ++c) {
    few.rows.push_back({plan.candidates[c], {}});
    for (const uint64_t bytes : few.sizes)
      few.rows.back().us.push_back(slowest_median(plan.candidates[c], bytes, effort.first_samples));
  }
  Timings all{sizes, {{std::nullopt, {}}}};
  for (const Method method : leaders(few, effort.leaders)) all.rows.push_back({method, {}});
  for (Timings::Row& row : all.rows)
    for (const uint64_t bytes : sizes) {
      double us = slowest_median(row.method, bytes, effort.samples);
      const auto before = std::find(few.sizes.begin(), few.sizes.end(), bytes);
      if (row.method && before != few.sizes.end())
        us = (us + few.of(row.method)->us[static_cast<size_t>(before - few.sizes.begin())]) / 2;
      row.us.push_back(us);
    }
  choose(all, plan);
  return plan;
}

Plan measured_exactly(const Fabric& f) {
  return measured(f, [](double us) { return us; });
}

std::optional<Method> serving(const Plan& plan, uint64_t bytes) {
  for (uint32_t r = 0; r < plan.count; ++r)
    if (bytes <= plan.ranges[r].max_bytes) return plan.ranges[r].method;
  return std::nullopt;
}

/// Those that are measured and some between them.
std::vector<uint64_t> sizes_of_calls() {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = 1024; bytes < kMaxBytes; bytes *= 2) {
    sizes.push_back(bytes);
    sizes.push_back(bytes + bytes / 2);
  }
  sizes.push_back(kMaxBytes);
  return sizes;
}

TEST(ChooseOnFabrics, OneShotThenTwoShotBehindASwitch) {
  const Plan plan = measured_exactly(kSwitch);
  ASSERT_EQ(plan.count, 2u) << describe(plan);
  EXPECT_EQ(plan.ranges[0].method, Method::kOneShot);
  EXPECT_EQ(plan.ranges[1].method, Method::kTwoShot);
  EXPECT_EQ(plan.max_bytes(), kMaxBytes);
}

TEST(ChooseOnFabrics, PullWherePostedWritesCollapse) {
  const Plan plan = measured_exactly(kCollapse);
  ASSERT_GE(plan.count, 2u) << describe(plan);
  for (uint32_t r = 0; r < plan.count; ++r)
    EXPECT_TRUE(plan.ranges[r].method && is_pull(*plan.ranges[r].method)) << describe(plan);
  EXPECT_EQ(serving(plan, 1024), Method::kOneShotPull);
  EXPECT_EQ(serving(plan, kMaxBytes), Method::kTwoShotPull);
}

TEST(ChooseOnFabrics, StagedWhereManyStreamsLoseSpeed) {
  const Plan plan = measured_exactly(kRootComplex);
  EXPECT_EQ(serving(plan, 1024), Method::kOneShot) << describe(plan);
  EXPECT_EQ(serving(plan, kMaxBytes), Method::kTwoShotStaged) << describe(plan);
}

TEST(ChooseOnFabrics, IslandsWhereTheCrossingIsSlow) {
  const Plan plan = measured_exactly(kTwoSockets);
  EXPECT_EQ(serving(plan, 1024), Method::kOneShot) << describe(plan);
  EXPECT_EQ(serving(plan, kMaxBytes), Method::kIslands) << describe(plan);
}

TEST(ChooseOnFabrics, TwoRanksTakeOneHop) {
  const Plan plan = measured_exactly(kPair);
  ASSERT_EQ(plan.count, 1u) << describe(plan);
  EXPECT_EQ(plan.ranges[0].method, Method::kOneShot);
}

/// Where the lines cross, less the margin: 2 us + S / 5000 against 0.95 (25 us + S / 12000).
TEST(ChooseOnFabrics, NcclTakesOverWhereItBecomesFaster) {
  const Plan plan = measured_exactly(kSlowPair);
  ASSERT_EQ(plan.count, 2u) << describe(plan);
  EXPECT_EQ(plan.ranges[0].method, Method::kOneShot);
  EXPECT_EQ(plan.ranges[1].method, std::nullopt);
  const double crossing = (0.95 * 25 - 2) / (1 / 5'000.0 - 0.95 / 12'000.0);
  EXPECT_NEAR(static_cast<double>(plan.ranges[0].max_bytes), crossing, 2);
}

TEST(ChooseOnFabrics, NothingWhereNcclIsAsFast) {
  EXPECT_TRUE(measured_exactly(kNoUse).is_empty());
}

/// Every sample takes up to a fifth longer than it should.
TEST(ChooseOnFabrics, NoiseCostsLittle) {
  constexpr uint32_t kRuns = 100;
  for (const Fabric& f : kFabrics) {
    SCOPED_TRACE(f.name);
    const Plan known = measured_exactly(f);
    uint32_t slow_runs = 0;
    for (uint32_t seed = 0; seed < kRuns; ++seed) {
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> noise(1.0, 1.2);
      const Plan plan = measured(f, [&](double us) { return us * noise(random); });
      double loss = 1;
      for (const uint64_t bytes : sizes_of_calls()) {
        const auto size = static_cast<double>(bytes);
        const double nccl = time_of(f, std::nullopt, size), us = time_of(f, serving(plan, bytes), size);
        EXPECT_LE(us, 1.02 * nccl) << "seed " << seed << ", " << bytes << " bytes: " << describe(plan);
        double best = nccl;
        for (uint32_t c = 0; c < known.candidate_count; ++c)
          best = std::min(best, time_of(f, known.candidates[c], size));
        loss = std::max(loss, us / best);
      }
      slow_runs += loss > 1.10;
    }
    EXPECT_LE(slow_runs, kRuns / 100);
  }
}

}  // namespace
}  // namespace onehop::test
