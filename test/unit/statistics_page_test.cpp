// What another process reads of the statistics, also where nothing of it can be believed.
#include "plugin/statistics_page.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "plugin/hooks.hpp"
#include "plugin/nccl_functions.hpp"
#include "plugin/statistics_table.hpp"
#include "plugin/statistics_text.hpp"

namespace onehop::test {
namespace {

/// A page with one communicator.
std::unique_ptr<StatisticsPage> page() {
  auto page = std::make_unique<StatisticsPage>();
  begin_page(*page, 77);
  page->images = 1;
  CommunicatorRecord& record = page->communicators[3];
  record.state = RecordState::kOn;
  record.rank = 1;
  record.ranks = 4;
  record.handle = 0xABC;
  record.meeting_ns = 12'100'000;
  record.set_up_ns = 61'400'000;
  std::strcpy(record.plan, "one-shot push up to 524288 bytes");
  record.statistics.count_taken(100, Method::kOneShot);
  record.statistics.count_taken(100, Method::kTwoShot);
  record.statistics.count_passed(1 << 20, Pass::kSize);
  page->gone.count_taken(8, Method::kOneShotPull);
  page->elsewhere.count_passed(0, Pass::kNotInspected);
  return page;
}

Result<StatisticsSnapshot> read(const StatisticsPage& page, size_t bytes = sizeof(StatisticsPage)) {
  return read_page({reinterpret_cast<const unsigned char*>(&page), bytes});
}

TEST(StatisticsPage, ReadsWhatIsInIt) {
  const auto snapshot = read(*page());
  ASSERT_TRUE(snapshot) << snapshot.reason();
  EXPECT_EQ(snapshot->pid, 77);
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  const auto& comm = snapshot->communicators[0];
  EXPECT_EQ(comm.state, RecordState::kOn);
  EXPECT_EQ(comm.rank, 1);
  EXPECT_EQ(comm.ranks, 4);
  EXPECT_EQ(comm.meeting_ns, 12'100'000u);
  EXPECT_EQ(comm.set_up_ns, 61'400'000u);
  EXPECT_NE(statistics_json(*snapshot).find("\"meeting_ms\":12.1,\"set_up_ms\":61.4"), std::string::npos);
  EXPECT_EQ(comm.plan, "one-shot push up to 524288 bytes");
  EXPECT_EQ(comm.statistics.taken_by(Method::kTwoShot), 1u);
  EXPECT_EQ(comm.statistics.bytes_by(Method::kTwoShot), 100u);
  EXPECT_EQ(comm.statistics.passed_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(snapshot->sums().taken(), 3u);
  EXPECT_EQ(snapshot->sums().passed(), 2u);
}

// Protects: a reader is not led outside of the page, or to numbers that mean something else, by whatever
// another process has written.
TEST(StatisticsPage, IsRefusedWhereItIsDamaged) {
  const auto refused = [](const auto& damage, const std::string& why) {
    const auto damaged = page();
    damage(*damaged);
    const auto snapshot = read(*damaged);
    ASSERT_FALSE(snapshot) << why;
    EXPECT_NE(snapshot.reason().find(why), std::string::npos) << snapshot.reason();
  };
  refused([](StatisticsPage& p) { p.magic ^= 1; }, "does not begin");
  for (const auto field : {&StatisticsPage::layout, &StatisticsPage::page_bytes,
                           &StatisticsPage::record_bytes, &StatisticsPage::records, &StatisticsPage::buckets,
                           &StatisticsPage::methods, &StatisticsPage::pass_reasons})
    for (const uint32_t value : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFFFFu})
      refused([&](StatisticsPage& p) { p.*field = value == 1 ? (p.*field) + 1 : value; }, "another version");
  refused([](StatisticsPage& p) { p.changes = 5; }, "being changed");
  refused([](StatisticsPage& p) { p.communicators[9].state = static_cast<RecordState>(17); },
          "no known state");
  refused([](StatisticsPage& p) { p.communicators[3].rank = -1; }, "impossible rank");
  refused([](StatisticsPage& p) { p.communicators[3].ranks = 0; }, "impossible rank");
}

TEST(StatisticsPage, IsRefusedWhereItIsTooShort) {
  const auto whole = page();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, offsetof(StatisticsPage, elsewhere) - 1,
                             offsetof(StatisticsPage, elsewhere), sizeof(StatisticsPage) - 1})
    EXPECT_FALSE(read(*whole, bytes)) << bytes;
}

// Protects: a terminal that is shown the text, and a reader of the JSON.
TEST(StatisticsPage, TextsEndAndAreHarmless) {
  const auto strange = page();
  std::memset(strange->communicators[3].plan, 'x', sizeof(CommunicatorRecord::plan));
  std::memcpy(strange->communicators[3].reason, "\x1B[2J\xFF\"\n", 8);
  std::memset(strange->version, 'v', sizeof(strange->version));
  const auto snapshot = read(*strange);
  ASSERT_TRUE(snapshot) << snapshot.reason();
  EXPECT_EQ(snapshot->communicators[0].plan, std::string(sizeof(CommunicatorRecord::plan), 'x'));
  EXPECT_EQ(snapshot->communicators[0].reason, "?[2J?\"?");
  EXPECT_EQ(snapshot->version.size(), sizeof(strange->version));
  EXPECT_NE(statistics_json(*snapshot).find("\"reason\":\"?[2J?\\\"?\""), std::string::npos);
}

TEST(StatisticsTable, KeepsEveryCountWhenCommunicatorsComeAndGo) {
  StatisticsTable table;
  constexpr size_t kMany = StatisticsPage::kRecords + 20;  // more than there are records
  std::vector<CommunicatorRecord*> records;
  for (size_t i = 0; i < kMany; ++i) {
    records.push_back(&table.enter());
    table.list(*records.back(), {.state = RecordState::kOn, .rank = 0, .ranks = 2, .handle = i});
    records.back()->statistics.count_taken(i, Method::kOneShot);
  }
  EXPECT_EQ(table.snapshot().communicators.size(), kMany);
  EXPECT_EQ(table.snapshot().sums().taken(), kMany);
  for (CommunicatorRecord* record : records) table.leave(*record);
  EXPECT_TRUE(table.snapshot().communicators.empty());
  EXPECT_EQ(table.snapshot().sums().taken(), kMany);
  EXPECT_EQ(table.snapshot().sums().taken_bytes(), kMany * (kMany - 1) / 2);

  // A record that is used again begins at zero.
  CommunicatorRecord& again = table.enter();
  EXPECT_EQ(again.statistics.taken(), 0u);
  table.leave(again);
}

// Protects: the counters of a job whose data loaders are forked children.
TEST(StatisticsTable, AForkedChildLeavesItToItsParent) {
  StatisticsTable table;
  table.elsewhere().count_passed(1, Pass::kNotInspected);
  table.publish();
  const pid_t child = fork();
  if (child == 0) {
    table.leave_to_parent();
    table.elsewhere().count_passed(1, Pass::kNotInspected);
    _exit(table.elsewhere().passed() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(table.snapshot().sums().passed(), 1u) << "counted before it was published, and not by the child";
}

// Protects: `onehop doctor` tries what the plugin does.
TEST(Hooks, AreThoseOfTheList) {
  Image image;
  std::vector<std::string> hooked, listed(std::begin(kHookedFunctions), std::end(kHookedFunctions));
  for (const interpose::Hook& hook : hooks_of(image)) hooked.emplace_back(hook.symbol);
  EXPECT_EQ(hooked, listed);
}

}  // namespace
}  // namespace onehop::test
