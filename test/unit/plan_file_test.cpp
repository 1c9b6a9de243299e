// Plan files: what is read from them, and that nothing else is.
#include "plugin/plan_file/plan_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/folder.hpp"
#include "test/protocol/random.hpp"

namespace onehop::test {
namespace {

const std::string kFirst = R"({"up_to": 4096, "method": "one-shot push", "blocks": 4, "workers": 128,
   "measured_at": 4096, "us": 2.5, "nccl_us": 6})";
const std::string kGood = R"({"format": 1, "plans": [{
  "machine": {"onehop": "0.1.0", "gpus": "2 x A", "links": "l", "driver": "d", "nccl": "n", "ranks": "2",
              "processes": "2", "staging": "device memory"},
  "measured": "today", "ranges": [)" +
                          kFirst + R"(,
  {"up_to": 65536, "method": "NCCL", "measured_at": 8192, "nccl_us": 7},
  {"up_to": 524288, "method": "one-shot pull", "measured_at": 524288, "us": 8, "nccl_us": 10.5}]}]})";

/// `text` with one part replaced.
std::string with(std::string text, const std::string& part, const std::string& instead) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), instead);
}

Settings settings_of(uint64_t max_bytes) {
  Settings settings;
  settings.max_bytes = max_bytes;
  return settings;
}

Plan plan_for(uint32_t ranks, StagingKind kind = StagingKind::kPeer, uint64_t max_bytes = 512 << 10) {
  return *make_plan(settings_of(max_bytes), kind, ranks);
}

/// Whatever was read: only what a communicator may be told.
void expect_within_limits(const PlanFile& file) {
  EXPECT_NE(file.hash, 0u);
  EXPECT_LE(file.plans.size(), kMostPlans);
  for (const FilePlan& plan : file.plans) {
    EXPECT_GE(plan.ranges.size(), 1u);
    EXPECT_LE(plan.ranges.size(), Plan{}.ranges.size());
    uint64_t below = 0;
    for (const FilePlan::Range& range : plan.ranges) {
      EXPECT_GT(range.up_to, below);
      EXPECT_LE(range.up_to, kLargestPlannedCall);
      EXPECT_TRUE(range.most.blocks == 0 || is_geometry(range.most.blocks, range.most.workers));
      if (range.method) {
        EXPECT_LT(static_cast<uint32_t>(*range.method), kMethods);
      }
      below = range.up_to;
    }
  }
}

TEST(PlanFile, HoldsWhatIsWrittenThere) {
  const Result<PlanFile> file = parse_plan_file(kGood);
  ASSERT_TRUE(file) << file.reason();
  expect_within_limits(*file);
  ASSERT_EQ(file->plans.size(), 1u);
  const FilePlan& plan = file->plans[0];
  EXPECT_EQ(plan.machine[Fact::kGpus], "2 x A");
  EXPECT_EQ(plan.machine[Fact::kStaging], "device memory");
  ASSERT_EQ(plan.ranges.size(), 3u);
  EXPECT_EQ(plan.ranges[0].method, Method::kOneShot);
  EXPECT_EQ(plan.ranges[0].most, (Geometry{4, 128}));
  EXPECT_EQ(plan.ranges[0].us, 2.5);
  EXPECT_EQ(plan.ranges[1].method, std::nullopt);
  EXPECT_EQ(plan.ranges[2].most, (Geometry{0, 0}));
  EXPECT_EQ(plan.ranges[2].nccl_us, 10.5);
  EXPECT_TRUE(parse_plan_file(R"({"format": 1, "plans": []})"));
}

// Protects: ranks compare the hash, so another byte must be another hash.
TEST(PlanFile, OfAnotherByteHasAnotherHash) {
  EXPECT_EQ(parse_plan_file(kGood)->hash, parse_plan_file(kGood)->hash);
  EXPECT_NE(parse_plan_file(kGood)->hash, parse_plan_file(with(kGood, "2.5", "2.6"))->hash);
  EXPECT_NE(parse_plan_file(kGood)->hash, parse_plan_file(kGood + " ")->hash);
}

TEST(PlanFile, CutOffAnywhereIsNone) {
  for (size_t length = 0; length < kGood.size(); ++length) {
    const Result<PlanFile> file = parse_plan_file(std::string_view(kGood).substr(0, length));
    ASSERT_FALSE(file) << length;
    EXPECT_FALSE(file.reason().empty());
  }
}

TEST(PlanFile, WithAnyBitFlippedIsNoneOrWithinLimits) {
  size_t read = 0;
  for (size_t bit = 0; bit < 8 * kGood.size(); ++bit) {
    std::string text = kGood;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    if (const Result<PlanFile> file = parse_plan_file(text)) {
      expect_within_limits(*file);
      ++read;
    }
  }
  EXPECT_GT(read, 0u) << "some flips only change a text";
}

TEST(PlanFile, OfRandomBytesIsNone) {
  Random random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(random.below(200), '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    EXPECT_FALSE(parse_plan_file(text));
  }
}

struct Damage {
  const char *part, *instead, *reason;
};

TEST(PlanFile, OfWhichSomethingIsWrongSaysWhat) {
  const std::string nest = "\"plans\": [" + std::string(100'000, '['),
                    digits = "\"us\": " + std::string(400, '9');
  const Damage damages[] = {
      {"\"format\": 1", "\"format\": 2", "\"format\""},
      {"\"format\": 1", "\"format\": \"1\"", "\"format\""},
      {"\"format\": 1", "\"form\": 1", "\"format\""},
      {"\"format\": 1", "\"format\": 1, \"more\": 1", "not known"},
      {"\"format\": 1", "\"format\": 1, \"format\": 1", "twice"},
      {"\"up_to\": 4096", "\"up_to\": 4096, \"up_to\": 4096", "twice"},
      {"[{", "{", "no JSON"},
      {"\"ranges\": [", "\"ranges\": [[1],", "no object"},
      {"\"up_to\": 4096", "\"up_to\": 0", "range 1 of plan 1 has a \"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": -1", "\"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": 4096.5", "\"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": 18446744073709551616", "\"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": 1e300", "\"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": null", "\"up_to\""},
      {"\"up_to\": 4096", "\"up_to\": [4096]", "\"up_to\""},
      {"\"up_to\": 65536", "\"up_to\": 4096", "range 2 of plan 1 has a \"up_to\""},
      {"\"up_to\": 524288", "\"up_to\": 8388609", "range 3 of plan 1 has a \"up_to\""},
      {"one-shot push", "three-shot", "method"},
      {"\"one-shot push\"", "7", "method"},
      {"\"blocks\": 4", "\"blocks\": 0", "\"blocks\""},
      {"\"blocks\": 4", "\"blocks\": 33", "\"blocks\""},
      {"\"blocks\": 4, ", "", "geometry"},
      {"\"workers\": 128", "\"workers\": 100", "geometry"},
      {"\"workers\": 128", "\"workers\": 0", "\"workers\""},
      {"\"workers\": 128", "\"workers\": 288", "\"workers\""},
      {", \"workers\": 128", "", "geometry"},
      {"\"measured_at\": 4096", "\"measured_at\": 4097", "\"measured_at\""},
      {"\"measured_at\": 8192", "\"measured_at\": 4096", "range 2 of plan 1 has a \"measured_at\""},
      {"\"us\": 2.5", "\"us\": 0", "\"us\""},
      {"\"us\": 2.5", "\"us\": -2.5", "\"us\""},
      {"\"us\": 2.5", "\"us\": 1e999", "no JSON"},
      {"\"us\": 2.5", "\"us\": 1e300", "\"us\""},
      {"\"us\": 2.5", "\"us\": NaN", "no JSON"},
      {"\"us\": 2.5", "\"us\": \"2.5\"", "\"us\""},
      {"\"nccl_us\": 7", "\"nccl_us\": 7, \"us\": 1", "not known"},
      {"2 x A", "2 x A\\n[error] forged line", "\"gpus\""},
      {"2 x A", "2 x \\u0000", "\"gpus\""},
      {"2 x A", "2 x \xff", "no JSON"},
      {"\"ranks\": \"2\"", "\"ranks\": 2", "\"ranks\""},
      {"\"driver\": \"d\", ", "", "\"driver\""},
      {"today", "to\tday", "no JSON"},
      {"\"today\"", "\"today\", \"islands\": 7", "\"islands\""},
      {"\"today\"", "\"today\", \"islands\": \"auto\"", "\"islands\""},
      {"\"today\"", "\"today\", \"islands\": \"0/0\"", "\"islands\""},
      {"\"today\"", "\"today\", \"islands\": \"0/2\"", "\"islands\""},
      {"\"today\"", "\"today\", \"islands\": \"0/99\"", "\"islands\""},
      {"one-shot push", "islands", "no \"islands\""},
      {"\"plans\": [", "\"plans\": [1,", "no object"},
      {"\"plans\": [", nest.c_str(), "nested"},
      {"\"us\": 2.5", digits.c_str(), "no JSON"},
  };
  for (const Damage& damage : damages) {
    const Result<PlanFile> file = parse_plan_file(with(kGood, damage.part, damage.instead));
    const std::string instead = std::string(damage.instead).substr(0, 100);
    ASSERT_FALSE(file) << instead;
    EXPECT_NE(file.reason().find(damage.reason), std::string::npos) << instead << ": " << file.reason();
    EXPECT_LT(file.reason().size(), 200u);
    for (const char c : file.reason()) EXPECT_TRUE(c >= ' ' && c <= '~') << file.reason();
  }
  std::string nul = kGood;
  nul[nul.find("today")] = '\0';
  EXPECT_FALSE(parse_plan_file(nul));
  EXPECT_FALSE(parse_plan_file(kGood + kGood));
  EXPECT_FALSE(parse_plan_file(kGood + std::string(1, '\0') + "more"));
}

TEST(PlanFile, HasAtMostSoMuch) {
  const std::string ranges = "\"ranges\": [";
  std::string many = with(kGood, ranges, ranges);
  for (int i = 0; i < 14; ++i)
    many = with(many, ranges,
                ranges + R"({"up_to": )" + std::to_string(20 - i) + R"(, "method": "NCCL", "measured_at": )" +
                    std::to_string(20 - i) + R"(, "nccl_us": 1}, )");
  EXPECT_FALSE(parse_plan_file(many)) << "17 ranges";
  EXPECT_FALSE(parse_plan_file(kGood + std::string(kLargestPlanFile, ' ')));
  EXPECT_TRUE(parse_plan_file(kGood + std::string(kLargestPlanFile - kGood.size(), ' ')));
  EXPECT_FALSE(parse_plan_file(with(kGood, "\"2 x A\"", '"' + std::string(kLongestFact + 1, 'A') + '"')));
  std::string plans = "{\"format\": 1, \"plans\": [1";
  for (int i = 0; i < 200'000; ++i) plans += ",1";
  const Result<PlanFile> file = parse_plan_file(plans + "]}");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.reason(), "it has too many values");
}

TEST(ReadPlanFile, ReadsOnlyRegularFiles) {
  const Folder folder;
  std::ofstream(folder / "good") << kGood;
  const Result<PlanFile> good = read_plan_file(folder / "good");
  ASSERT_TRUE(good) << good.reason();
  EXPECT_EQ(good->hash, parse_plan_file(kGood)->hash);
  std::filesystem::create_symlink(folder / "good", folder / "link");
  EXPECT_TRUE(read_plan_file(folder / "link"));

  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder / "loop", folder / "loop");
  std::ofstream(folder / "empty").flush();
  std::ofstream(folder / "large") << kGood << std::string(kLargestPlanFile, ' ');
  std::ofstream(folder / "secret") << kGood;
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  const struct {
    std::string path;
    const char* reason;
  } bad[] = {{folder / "none", "No such file"},      {folder / "fifo", "no regular file"},
             {folder / ".", "no regular file"},      {folder / "loop", "symbolic links"},
             {folder / "empty", "no JSON"},          {folder / "large", "more than 1048576 bytes"},
             {"/dev/zero", "no regular file"},       {"/dev/tty", "no"},
             {std::string(10'000, 'x'), "too long"}, {"", "No such file"}};
  for (const auto& [path, reason] : bad) {
    const Result<PlanFile> file = read_plan_file(path);
    ASSERT_FALSE(file) << path;
    if (path != "/dev/tty") {  // may not be there
      EXPECT_NE(file.reason().find(reason), std::string::npos) << path << ": " << file.reason();
    }
  }
  if (getuid() != 0) {
    EXPECT_FALSE(read_plan_file(folder / "secret"));
  }
  EXPECT_FALSE(read_plan_file("/proc/self/mem"));
}

TEST(FindPlan, EveryFactCounts) {
  const PlanFile file = *parse_plan_file(kGood);
  const Machine machine = file.plans[0].machine;
  EXPECT_EQ(*find_plan(file, machine), &file.plans[0]);
  for (size_t f = 0; f < kFacts; ++f) {
    Machine other = machine;
    other.facts[f] += "!";
    const Result<const FilePlan*> found = find_plan(file, other);
    ASSERT_FALSE(found) << kFactNames[f];
    EXPECT_NE(found.reason().find(std::string(kFactNames[f]) + " '" + machine.facts[f] + "' for '" +
                                  other.facts[f]),
              std::string::npos)
        << found.reason();
  }
  EXPECT_EQ(find_plan(PlanFile{1, {}}, machine).reason(), "it has no plans");
}

TEST(FindPlan, FindsTheOneAmongSeveral) {
  PlanFile file = *parse_plan_file(kGood);
  file.plans.push_back(file.plans[0]);
  file.plans[0].machine[Fact::kRanks] = "4";
  EXPECT_EQ(*find_plan(file, file.plans[1].machine), &file.plans[1]);
  file.plans[1].machine[Fact::kRanks] = "8";
  file.plans[1].machine[Fact::kGpus] = "8 x B";
  Machine machine = file.plans[0].machine;
  machine[Fact::kRanks] = "2";
  const std::string why = find_plan(file, machine).reason();
  EXPECT_NE(why.find("ranks '4' for '2'"), std::string::npos) << why;
  EXPECT_EQ(why.find("gpus"), std::string::npos) << "the nearest: " << why;
}

TEST(UsePlan, SetsRangesAndTimes) {
  const FilePlan from = parse_plan_file(kGood)->plans[0];
  Plan plan = plan_for(2);
  Timings timings;
  ASSERT_TRUE(use_plan(from, kMaxBlocks, Settings{}, plan, timings));
  ASSERT_EQ(plan.count, 3u);
  EXPECT_EQ(plan.max_bytes(), 512u << 10);
  const Decision small = decide({2048, nccl::kBfloat16, nccl::kSum}, plan),
                 middle = decide({2049, nccl::kBfloat16, nccl::kSum}, plan),
                 large = decide({32769, nccl::kBfloat16, nccl::kSum}, plan);
  ASSERT_TRUE(small.served && large.served);
  EXPECT_EQ(small.served->method, Method::kOneShot);
  EXPECT_EQ(small.served->most, (Geometry{4, 128}));
  EXPECT_EQ(middle.pass, Pass::kSlower);
  EXPECT_FALSE(middle.served);
  EXPECT_EQ(large.served->method, Method::kOneShotPull);
  EXPECT_EQ(large.served->most, (Geometry{0, 0}));
  EXPECT_GT(large.served->piece, 0u);
}

// Protects: the user's limit is the user's.
TEST(UsePlan, StaysBelowMaxBytes) {
  const FilePlan from = parse_plan_file(kGood)->plans[0];
  for (const uint64_t max_bytes :
       {uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{10000}, uint64_t{512} << 10}) {
    Plan plan = plan_for(2, StagingKind::kPeer, max_bytes);
    Timings timings;
    ASSERT_TRUE(use_plan(from, kMaxBlocks, settings_of(max_bytes), plan, timings));
    EXPECT_EQ(plan.max_bytes(), max_bytes);
  }
}

/// A plan for `ranks` ranks that names islands.
FilePlan with_islands(const std::string& islands) {
  const std::string text = with(with(kGood, "one-shot push", "islands"), "\"today\"",
                                "\"today\", \"islands\": \"" + islands + '"');
  const Result<PlanFile> file = parse_plan_file(text);
  EXPECT_TRUE(file) << file.reason();
  FilePlan plan = file->plans[0];
  plan.ranges[2].method = Method::kIslands;
  return plan;
}

TEST(UsePlan, BringsItsIslands) {
  Plan plan = plan_for(4);
  Timings timings;
  ASSERT_TRUE(use_plan(with_islands("0,2/1,3"), kMaxBlocks, Settings{}, plan, timings));
  EXPECT_EQ(show_islands({plan.islands.island, 4}), "0,2/1,3");
  EXPECT_EQ(plan.islands.runs, 4u);
  EXPECT_GT(plan.piece(Method::kIslands, Element::kFloat64), 0u);
  // A plan that has none leaves those that there are.
  const FilePlan none = parse_plan_file(kGood)->plans[0];
  ASSERT_TRUE(use_plan(none, kMaxBlocks, Settings{}, plan, timings));
  EXPECT_EQ(show_islands({plan.islands.island, 4}), "0,2/1,3");
}

// Protects: what the user names, and memory that was not mapped.
TEST(UsePlan, DoesNotChangeIslandsThatMustStay) {
  const auto used = [](const std::string& islands, uint32_t ranks, const std::string& named) {
    Settings settings;
    EXPECT_TRUE(parse_islands(named, settings.islands));
    Plan plan = *make_plan(settings, StagingKind::kPeer, ranks);
    const std::string before = show_islands({plan.islands.island, ranks});
    Timings timings;
    const Status status = use_plan(with_islands(islands), kMaxBlocks, settings, plan, timings);
    if (!status) {
      EXPECT_EQ(show_islands({plan.islands.island, ranks}), before);
    }
    return status ? "" : status.reason();
  };
  EXPECT_EQ(used("0,2/1,3", 4, "0-1/2-3"), "its islands 0,2/1,3 are not those of ONEHOP_ISLANDS");
  EXPECT_EQ(used("0,2/1,3", 4, "0,2/1,3"), "");
  EXPECT_EQ(used("0,2/1,3", 4, "0-3/4-7"), "");  // named for eight ranks
  EXPECT_EQ(used("0,2/1,3", 6, "auto"), "its islands 0,2/1,3 are not of 6 ranks");
  // Ten ranks have islands and nothing else.
  EXPECT_EQ(used("0,2,4,6,8/1,3,5,7,9", 10, "auto"),
            "its islands 0,2,4,6,8/1,3,5,7,9 are not those of this communicator");
  EXPECT_EQ(used("0-4/5-9", 10, "auto"), "");
}

// Protects: memory that was not laid out, links that were not probed, and blocks that cannot run at once.
TEST(UsePlan, RefusesWhatTheCommunicatorCannotServe) {
  const FilePlan good = parse_plan_file(kGood)->plans[0];
  const auto refused = [](const FilePlan& from, uint32_t most_blocks, Plan plan, const std::string& reason) {
    const std::string before = describe(plan);
    Timings timings;
    const Status used = use_plan(from, most_blocks, Settings{}, plan, timings);
    ASSERT_FALSE(used);
    EXPECT_NE(used.reason().find(reason), std::string::npos) << used.reason();
    EXPECT_EQ(describe(plan), before) << "nothing is changed";
  };
  refused(good, kMaxBlocks, plan_for(2, StagingKind::kHost), "one-shot push cannot serve");
  refused(good, 3, plan_for(2), "4 blocks has more than the 3");
  for (uint32_t m = 0; m < kMethods; ++m) {
    FilePlan from = good;
    from.ranges[2].method = static_cast<Method>(m);
    from.islands = {0, 1, 0, 1};
    for (const StagingKind kind : kStagingKinds)
      for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
        const Result<Plan> made = make_plan(Settings{}, kind, ranks);
        if (!made) continue;
        Plan plan = *made;
        Timings timings;
        if (!use_plan(from, kMaxBlocks, Settings{}, plan, timings)) continue;
        for (uint32_t r = 0; r < plan.count; ++r)
          if (plan.ranges[r].method) {
            EXPECT_GT(plan.piece(*plan.ranges[r].method, Element::kFloat64), 0u) << describe(plan);
          }
      }
  }
}

}  // namespace
}  // namespace onehop::test
