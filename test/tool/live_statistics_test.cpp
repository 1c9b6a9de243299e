// Reading the statistics of a process from outside.
#include "tools/onehop/live_statistics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "plugin/statistics_table.hpp"

namespace onehop::tool {
namespace {

/// A descriptor of this process that looks like a page of statistics.
class Fake {
 public:
  explicit Fake(const void* data, size_t bytes) : fd_(memfd_create(kStatisticsName, MFD_CLOEXEC)) {
    EXPECT_EQ(write(fd_, data, bytes), static_cast<ssize_t>(bytes));
  }
  ~Fake() { close(fd_); }
  Fake(const Fake&) = delete;

 private:
  int fd_;
};

std::unique_ptr<StatisticsPage> page_of(int pid) {
  auto page = std::make_unique<StatisticsPage>();
  begin_page(*page, pid);
  return page;
}

std::string reason(int pid) {
  const auto snapshot = live_statistics(pid);
  return snapshot ? "read" : snapshot.reason();
}

TEST(LiveStatistics, OfAProcessWithoutOnehop) {
  EXPECT_NE(reason(getpid()).find("not active"), std::string::npos);
  EXPECT_NE(reason(0x7FFFFFFF).find("no such process"), std::string::npos);
}

TEST(LiveStatistics, ThatAreDamagedAreRefused) {
  const auto good = page_of(getpid());
  {
    const Fake fake(good.get(), sizeof(StatisticsPage));
    EXPECT_EQ(reason(getpid()), "read");
  }
  {
    const Fake fake(good.get(), 0);
    EXPECT_NE(reason(getpid()).find("too short"), std::string::npos);
  }
  {
    const Fake fake(good.get(), sizeof(StatisticsPage) - 8);
    EXPECT_NE(reason(getpid()).find("size"), std::string::npos);
  }
  {
    std::vector<unsigned char> longer(sizeof(StatisticsPage) + 4096);
    std::copy_n(reinterpret_cast<const unsigned char*>(good.get()), sizeof(StatisticsPage), longer.begin());
    const Fake fake(longer.data(), longer.size());
    EXPECT_NE(reason(getpid()).find("size"), std::string::npos);
  }
  {
    const auto other = page_of(getpid() + 1);
    const Fake fake(other.get(), sizeof(StatisticsPage));
    EXPECT_NE(reason(getpid()).find("those of process"), std::string::npos);
  }
  {
    const auto odd = page_of(getpid());
    odd->changes = 7;
    const Fake fake(odd.get(), sizeof(StatisticsPage));
    EXPECT_NE(reason(getpid()).find("being changed"), std::string::npos) << "and it does not wait for ever";
  }
}

TEST(LiveStatistics, AreReadWhileTheyGrow) {
  // Never unmapped, and its descriptor stays: so this is the last test of the file.
  static auto& table = *new StatisticsTable;
  CommunicatorRecord& record = table.enter();
  table.list(record, {.state = RecordState::kOff, .rank = 0, .ranks = 3, .handle = 1, .reason = "why"});
  table.leave(record);
  table.publish();
  for (uint64_t calls = 1; calls <= 3; ++calls) {
    table.elsewhere().count_passed(10, Pass::kNotInspected);
    const auto snapshot = live_statistics(getpid());
    ASSERT_TRUE(snapshot) << snapshot.reason();
    EXPECT_EQ(snapshot->elsewhere.passed(), calls);
    EXPECT_EQ(snapshot->elsewhere.passed_bytes(), 10 * calls);
  }
  const std::vector<int> pids = processes_with_statistics();
  EXPECT_TRUE(std::find(pids.begin(), pids.end(), getpid()) != pids.end());
}

}  // namespace
}  // namespace onehop::tool
