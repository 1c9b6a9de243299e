// The table of settings: parsing, what a user is told, and the agreement between ranks.
#include "plugin/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plugin/one_line.hpp"
#include "test/settings_of.hpp"

namespace onehop::test {
namespace {

const SettingRow& row_of(std::string_view name) {
  const auto rows = setting_rows();
  const auto row = std::ranges::find_if(rows, [&](const SettingRow& r) { return r.name == name; });
  EXPECT_NE(row, rows.end()) << name;
  return *row;
}

struct Texts {
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

const Texts kSwitchTexts{{"0", "1"}, {"", "2", "00", "true", "yes", "on", " 1", "1 ", "-1"}};
const Texts kPathTexts{{"/a", "relative name", "%p", "="}, {""}};

/// What each row must and must not understand. A row that is missing here fails a test below.
const std::map<std::string, Texts> kTexts = {
    {"ONEHOP_ENABLE", kSwitchTexts},
    {"ONEHOP_ALGO",
     {{"auto", "oneshot", "1stage", "twoshot", "2stage", "oneshot-push", "twoshot-push", "oneshot-staged",
       "twoshot-staged", "oneshot-pull", "twoshot-pull", "islands"},
      {"", "1-stage", "AUTO", "oneshot ", "one", "twoshot,oneshot", "oneshot-", "push", "twoshot_push",
       "oneshot push", "islands-push", "3stage"}}},
    {"ONEHOP_ISLANDS",
     {{"auto", "0/1", "1/0", "0-3/4-7", "0,1,2,3/4-7", "0,2/1,3", "1,3/2,0", "0-1,2/3", "2,0-1/3", "0/1/2/3",
       "0-7/8-15", "8-15/0-7", "0-7/8", "00/01", "0-0/1-1", "0/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15",
       "0,2,4,6,8,10,12,14/1,3,5,7,9,11,13,15"},
      {"",
       "AUTO",
       "auto ",
       "none",
       "0",
       "0-3",
       "0,1,2",
       "/",
       "0/",
       "/0",
       "0/1/",
       "0//1",
       ",",
       "0,/1",
       ",0/1",
       "0,,2/1",
       "0-/1",
       "-0/1",
       "0-1-2/3",
       "1-0/2",
       "0/2",
       "1/2",
       "0,1/1,2",
       "0,0/1",
       "0-2/2-3",
       "0/1/0",
       "0-8/9",
       "0-7,8/9",
       "0-7/8-16",
       "0-7/8-15/16",
       "16/0",
       "0/256",
       "0/-1",
       "0/+1",
       "0 /1",
       "0/ 1",
       " 0/1",
       "0/1 ",
       "0;1",
       "0|1",
       "0/1\n",
       "a/b",
       "0x0/1",
       "0.0/1",
       "0--1/2",
       "4294967296/1",
       "0/18446744073709551617",
       "0-18446744073709551615/1",
       "0-3/4-7/auto",
       "0-7/8-15/0",
       "0/1,auto"}}},
    {"ONEHOP_MAX_BYTES",
     {{"0", "1", "65536", "64K", "8M", "8192K", "8388608", "0K", "0M"},
      {"",
       "K",
       "M",
       "-1",
       "-1K",
       "+1",
       " 1",
       "1 ",
       "64k",
       "64KB",
       "64KiB",
       "1G",
       "6.4K",
       "0x10",
       "1e3",
       "8M1",
       "9M",
       "8193K",
       "8388609",
       "18446744073709551615",
       "18446744073709551616",
       "18014398509481984K",
       "17592186044416M",
       "99999999999999999999999999"}}},
    {"ONEHOP_STAGING", {{"auto", "p2p", "host"}, {"", "host ", "P2P", "HOST", "p2p,host", "none"}}},
    {"ONEHOP_MEASURE", {{"off", "quick", "full"}, {"", "0", "1", "on", "OFF", "quick,full"}}},
    {"ONEHOP_TIMEOUT_S",
     {{"0", "1", "1800", "1000000"}, {"", "-1", "1000001", "1.5", "1s", "1K", " 1", "18446744073709551616"}}},
    {"ONEHOP_LOG",
     {{"off", "error", "warn", "info", "debug", "trace"}, {"", "INFO", "warning", "4", "info,debug"}}},
    {"ONEHOP_PLAN", kPathTexts},
    {"ONEHOP_LOG_FILE", kPathTexts},
    {"ONEHOP_STATS", kSwitchTexts},
    {"ONEHOP_STATS_FILE", kPathTexts},
};

TEST(SettingsReport, IsLinesWhateverTheEnvironmentHolds) {
  const SettingsReport report = settings_of({"ONEHOP_ENABLE=\x1b[2J\nforged", "ONEHOP_\n=1"});
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_EQ(report.errors[0].find("ONEHOP_ENABLE=?[2J?forged: not understood"), 0u) << report.errors[0];
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0].find("ONEHOP_? is no setting"), 0u) << report.warnings[0];
}

TEST(Settings, EachRowIsNamedOnceAndSaysWhatItIs) {
  std::set<std::string> names;
  for (const SettingRow& row : setting_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(std::string_view(row.name).starts_with("ONEHOP_")) << row.name;
    EXPECT_STRNE(row.allowed, "") << row.name;
    EXPECT_TRUE(std::string_view(row.text).ends_with('.')) << row.name << ": a sentence";
  }
}

/// The documentation's default is the one that is used.
TEST(Settings, EachDefaultIsWhatItsTextSays) {
  for (const SettingRow& row : setting_rows()) {
    const std::string used = row.show(Settings{});
    if (*row.fallback == '\0') {
      EXPECT_EQ(used, "") << row.name;
      continue;
    }
    // Starts from another value: a parser that leaves it alone must not pass.
    for (const std::string& other : kTexts.at(row.name).good) {
      Settings settings;
      ASSERT_TRUE(row.parse(other, settings)) << row.name << "=" << other;
      ASSERT_TRUE(row.parse(row.fallback, settings)) << row.name;
      EXPECT_EQ(row.show(settings), used) << row.name << " after " << other;
    }
  }
}

TEST(Settings, EachRowTakesWhatItAllowsAndNothingElse) {
  for (const SettingRow& row : setting_rows()) {
    ASSERT_TRUE(kTexts.contains(row.name)) << "no values to test for " << row.name;
    for (const std::string& text : kTexts.at(row.name).good) {
      const SettingsReport report = settings_of({std::string(row.name) + "=" + text});
      EXPECT_TRUE(report.errors.empty()) << row.name << "=" << text;
      EXPECT_TRUE(report.warnings.empty()) << row.name << "=" << text;
    }
    for (const std::string& text : kTexts.at(row.name).bad) {
      const SettingsReport report = settings_of({std::string(row.name) + "=" + text});
      ASSERT_EQ(report.errors.size(), 1u) << row.name << "=" << text;
      // What a user needs to put it right.
      EXPECT_EQ(report.errors[0].find(std::string(row.name) + "=" + one_line(text)), 0u);
      EXPECT_NE(report.errors[0].find(row.allowed), std::string::npos);
    }
  }
}

/// What is shown is what is compared between ranks: read again it must mean the same.
TEST(Settings, WhatIsShownIsUnderstoodAsTheSame) {
  for (const SettingRow& row : setting_rows())
    for (const std::string& text : kTexts.at(row.name).good) {
      Settings settings, again;
      ASSERT_TRUE(row.parse(text, settings));
      const std::string shown = row.show(settings);
      ASSERT_TRUE(row.parse(shown, again)) << row.name << "=" << shown;
      EXPECT_EQ(row.show(again), shown);
    }
}

TEST(Settings, EachVariableReachesItsOwnField) {
  const Settings s =
      settings_of({"ONEHOP_ENABLE=0", "ONEHOP_ALGO=1stage", "ONEHOP_ISLANDS=0/1", "ONEHOP_MAX_BYTES=3K",
                   "ONEHOP_STAGING=p2p", "ONEHOP_TIMEOUT_S=7", "ONEHOP_LOG=debug", "ONEHOP_LOG_FILE=/l",
                   "ONEHOP_STATS=1", "ONEHOP_STATS_FILE=/s", "ONEHOP_PLAN=/p"})
          .settings;
  EXPECT_FALSE(s.enable);
  EXPECT_EQ(s.algo, Algo::kOneShot);
  EXPECT_EQ(s.islands, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(s.max_bytes, 3072u);
  EXPECT_EQ(s.staging, StagingChoice::kP2p);
  EXPECT_EQ(s.timeout_s, 7u);
  EXPECT_EQ(s.log, LogLevel::kDebug);
  EXPECT_EQ(s.log_file, "/l");
  EXPECT_TRUE(s.stats);
  EXPECT_EQ(s.stats_file, "/s");
  EXPECT_EQ(s.plan, "/p");
}

TEST(Settings, EachNameOfAMethodIsThatMethod) {
  const std::pair<const char*, Algo> cases[] = {
      {"auto", Algo::kAuto},
      {"oneshot", Algo::kOneShot},
      {"1stage", Algo::kOneShot},
      {"twoshot", Algo::kTwoShot},
      {"2stage", Algo::kTwoShot},
      {"oneshot-push", Algo::kOneShotPush},
      {"twoshot-push", Algo::kTwoShotPush},
      {"oneshot-staged", Algo::kOneShotStaged},
      {"twoshot-staged", Algo::kTwoShotStaged},
      {"oneshot-pull", Algo::kOneShotPull},
      {"twoshot-pull", Algo::kTwoShotPull},
      {"islands", Algo::kIslands},
  };
  EXPECT_EQ(std::size(cases), kTexts.at("ONEHOP_ALGO").good.size());
  for (const auto& [text, algo] : cases)
    EXPECT_EQ(settings_of({std::string("ONEHOP_ALGO=") + text}).settings.algo, algo) << text;
}

TEST(Settings, EachNameOfAStagingIsThatStaging) {
  EXPECT_EQ(settings_of({"ONEHOP_STAGING=auto"}).settings.staging, StagingChoice::kAuto);
  EXPECT_EQ(settings_of({"ONEHOP_STAGING=p2p"}).settings.staging, StagingChoice::kP2p);
  EXPECT_EQ(settings_of({"ONEHOP_STAGING=host"}).settings.staging, StagingChoice::kHost);
}

TEST(Settings, EachNameOfAMeasurementIsThatMeasurement) {
  EXPECT_EQ(settings_of({"ONEHOP_MEASURE=off"}).settings.measure, MeasureChoice::kOff);
  EXPECT_EQ(settings_of({"ONEHOP_MEASURE=quick"}).settings.measure, MeasureChoice::kQuick);
  EXPECT_EQ(settings_of({"ONEHOP_MEASURE=full"}).settings.measure, MeasureChoice::kFull);
}

TEST(Settings, IslandsAreTheIslandOfEachRank) {
  const std::pair<const char*, std::vector<uint8_t>> cases[] = {
      {"auto", {}},
      {"0/1", {0, 1}},
      {"1/0", {1, 0}},
      {"0-3/4-7", {0, 0, 0, 0, 1, 1, 1, 1}},
      {"0,2/1,3", {0, 1, 0, 1}},
      {"3,1/2,0", {1, 0, 1, 0}},
      {"0-1,4/2,3,5", {0, 0, 1, 1, 0, 1}},
      {"0/1-2/3", {0, 1, 1, 2}},
      {"0-7/8-15", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (const auto& [text, islands] : cases)
    EXPECT_EQ(settings_of({std::string("ONEHOP_ISLANDS=") + text}).settings.islands, islands) << text;
}

/// A partition that was half read must not stay.
TEST(Settings, BadIslandsLeaveAuto) {
  for (const std::string& text : kTexts.at("ONEHOP_ISLANDS").bad)
    EXPECT_TRUE(settings_of({"ONEHOP_ISLANDS=" + text}).settings.islands.empty()) << text;
}

TEST(Settings, BytesHaveUnits) {
  const std::pair<const char*, uint64_t> cases[] = {{"0", 0},       {"17", 17},      {"1K", 1024},
                                                    {"64K", 65536}, {"1M", 1 << 20}, {"8M", 8 << 20}};
  for (const auto& [text, bytes] : cases)
    EXPECT_EQ(settings_of({std::string("ONEHOP_MAX_BYTES=") + text}).settings.max_bytes, bytes) << text;
}

TEST(Settings, ABadValueChangesNothingElse) {
  const SettingsReport report =
      settings_of({"ONEHOP_MAX_BYTES=64KB", "ONEHOP_ALGO=1-stage", "ONEHOP_TIMEOUT_S=9"});
  EXPECT_EQ(report.errors.size(), 2u);
  EXPECT_EQ(report.settings.max_bytes, Settings{}.max_bytes);
  EXPECT_EQ(report.settings.algo, Settings{}.algo);
  EXPECT_EQ(report.settings.timeout_s, 9u);
}

TEST(Settings, OtherVariablesAreNotLookedAt) {
  const SettingsReport report =
      settings_of({"PATH=/bin", "XONEHOP_ALGO=x", "onehop_algo=x", "ONEHOP", "ONEHOPALGO=x", "ONEHOP_NOTHING",
                   "=", "", "NCCL_ALGO=x", "ONEHOP_STANDIN_X=x", "ONEHOP_TEST_LIBNCCL=x"});
  EXPECT_TRUE(report.errors.empty());
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_TRUE(read_settings(nullptr).errors.empty());
}

TEST(Settings, AnUnknownVariableIsNamedWithItsNearestNeighbour) {
  const std::pair<const char*, const char*> cases[] = {
      {"ONEHOP_ALGOS", "ONEHOP_ALGO"},           {"ONEHOP_MAX_BYTE", "ONEHOP_MAX_BYTES"},
      {"ONEHOP_MAXBYTES", "ONEHOP_MAX_BYTES"},   {"ONEHOP_TIMEOUT", "ONEHOP_TIMEOUT_S"},
      {"ONEHOP_ENABLED", "ONEHOP_ENABLE"},       {"ONEHOP_STAT", "ONEHOP_STATS"},
      {"ONEHOP_STATSFILE", "ONEHOP_STATS_FILE"}, {"ONEHOP_log", "ONEHOP_LOG"},
      {"ONEHOP_ISLAND", "ONEHOP_ISLANDS"},
  };
  for (const auto& [typed, meant] : cases) {
    const SettingsReport report = settings_of({std::string(typed) + "=1"});
    EXPECT_TRUE(report.errors.empty()) << typed << ": a later release may know it, so it is no error";
    ASSERT_EQ(report.warnings.size(), 1u) << typed;
    EXPECT_EQ(report.warnings[0].find(std::string(typed) + " "), 0u) << report.warnings[0];
    EXPECT_NE(report.warnings[0].find(std::string(" ") + meant + "?"), std::string::npos)
        << report.warnings[0];
  }
}

uint64_t hash_of(const std::vector<std::string>& entries) {
  const SettingsReport report = settings_of(entries);
  EXPECT_TRUE(report.errors.empty());
  return settings_hash(report.settings);
}

TEST(SettingsAgreement, SpellingDoesNotMatter) {
  EXPECT_EQ(hash_of({"ONEHOP_ALGO=1stage"}), hash_of({"ONEHOP_ALGO=oneshot"}));
  EXPECT_EQ(hash_of({"ONEHOP_MAX_BYTES=64K"}), hash_of({"ONEHOP_MAX_BYTES=65536"}));
  EXPECT_EQ(hash_of({"ONEHOP_MAX_BYTES=512K"}), hash_of({})) << "the default, said";
  EXPECT_EQ(hash_of({"ONEHOP_ALGO=2stage"}), hash_of({"ONEHOP_ALGO=twoshot"}));
  EXPECT_EQ(hash_of({"ONEHOP_ISLANDS=0-3/4-7"}), hash_of({"ONEHOP_ISLANDS=3,0-2/7,6,4-5"}));
  EXPECT_EQ(hash_of({"ONEHOP_ALGO=1stage", "ONEHOP_STAGING=p2p"}),
            hash_of({"ONEHOP_STAGING=p2p", "ONEHOP_ALGO=1stage"}));
}

/// Every pair of values of every row: different hashes exactly where ranks must agree and do not.
TEST(SettingsAgreement, OnlyWhatRanksMustAgreeOnCounts) {
  for (const SettingRow& row : setting_rows())
    for (const std::string& a : kTexts.at(row.name).good)
      for (const std::string& b : kTexts.at(row.name).good) {
        Settings first, second;
        ASSERT_TRUE(row.parse(a, first) && row.parse(b, second));
        const bool differ = row.agree && row.show(first) != row.show(second);
        EXPECT_EQ(settings_hash(first) != settings_hash(second), differ)
            << row.name << ": " << a << ", " << b;
      }
}

/// What changes what a rank launches, or whether it waits, must be agreed on.
TEST(SettingsAgreement, CoversWhatTheRanksDoTogether) {
  for (const char* name : {"ONEHOP_ALGO", "ONEHOP_ISLANDS", "ONEHOP_MAX_BYTES", "ONEHOP_STAGING",
                           "ONEHOP_MEASURE", "ONEHOP_TIMEOUT_S"})
    EXPECT_TRUE(row_of(name).agree) << name;
  for (const char* name :
       {"ONEHOP_PLAN", "ONEHOP_LOG", "ONEHOP_LOG_FILE", "ONEHOP_STATS", "ONEHOP_STATS_FILE"})
    EXPECT_FALSE(row_of(name).agree) << name;
}

TEST(SettingsDocument, HasARowForEverySetting) {
  const std::string text = settings_markdown();
  for (const SettingRow& row : setting_rows()) {
    const size_t at = text.find("| `" + std::string(row.name) + "` | ");
    ASSERT_NE(at, std::string::npos) << row.name;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_NE(line.find(row.allowed), std::string::npos) << line;
    EXPECT_NE(line.find(row.fallback), std::string::npos) << line;
    EXPECT_NE(line.find(row.text), std::string::npos) << line;
    EXPECT_EQ(std::ranges::count(line, '|'), 6) << "a cell would break the table: " << line;
    EXPECT_EQ(line.find("| yes |") != std::string::npos, row.agree) << line;
  }
}

/// Whoever starts a program with more rights than his own must not choose what it writes.
TEST(Settings, OfAPrivilegedProgramKeepItOffAndNameNoFile) {
  const SettingsReport report = settings_of_privileged();
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_EQ(report.errors[0].rfind("this program has more rights than the user who started it", 0), 0u);
  EXPECT_TRUE(report.settings.log_file.empty() && report.settings.stats_file.empty());
}

}  // namespace
}  // namespace onehop::test
