#include "plugin/statistics_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "plugin/log.hpp"

namespace onehop {
namespace {

void put(std::span<char> field, const std::string& text) {
  std::memset(field.data(), 0, field.size());
  std::memcpy(field.data(), text.data(), std::min(text.size(), field.size() - 1));
}

void* map_private(void* where, int flags) {
  return mmap(where, sizeof(StatisticsPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
              0);
}

}  // namespace

/// Holds the lock, and tells readers in other processes that a copy made now may be torn.
class StatisticsTable::Change {
 public:
  explicit Change(StatisticsTable& table) : lock_(table.changes_), counter_(table.page_->changes) {
    counter_.store(counter_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Nothing of the change is seen before the odd number, and (below) the even one not before all of it.
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { counter_.store(counter_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  Change(const Change&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  std::atomic_ref<uint32_t> counter_;
};

StatisticsTable::StatisticsTable() : taken_(StatisticsPage::kRecords) {
  // Pages that nobody touches cost nothing: most processes have few communicators.
  void* memory = map_private(nullptr, MAP_NORESERVE);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  page_ = static_cast<StatisticsPage*>(memory);
  begin_page(*page_, getpid());
}

CommunicatorRecord& StatisticsTable::enter() {
  const Change change(*this);
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    taken_[i] = true;
    return page_->communicators[i];
  }
  unlisted_.push_back(new CommunicatorRecord{});
  page_->unlisted = static_cast<uint32_t>(unlisted_.size());
  return *unlisted_.back();
}

void StatisticsTable::list(CommunicatorRecord& record, const StatisticsSnapshot::Listed& facts) {
  const Change change(*this);
  record.rank = facts.rank;
  record.ranks = facts.ranks;
  record.handle = facts.handle;
  record.meeting_ns = facts.meeting_ns;
  record.set_up_ns = facts.set_up_ns;
  record.staging_bytes = facts.staging_bytes;
  put(record.plan, facts.plan);
  put(record.reason, facts.reason);
  record.state = facts.state;
}

void StatisticsTable::close(CommunicatorRecord& record, const std::string& reason) {
  const Change change(*this);
  put(record.reason, reason);
  record.state = RecordState::kOff;
}

void StatisticsTable::leave(CommunicatorRecord& record) {
  const Change change(*this);
  page_->gone.add(record.statistics);
  if (const auto beyond = std::find(unlisted_.begin(), unlisted_.end(), &record); beyond != unlisted_.end()) {
    delete *beyond;
    unlisted_.erase(beyond);
    page_->unlisted = static_cast<uint32_t>(unlisted_.size());
    return;
  }
  record = {};
  taken_[static_cast<size_t>(&record - page_->communicators)] = false;
}

void StatisticsTable::publish() {
  const std::lock_guard lock(changes_);
  if (published_) return;
  published_ = true;
  const int fd = memfd_create(kStatisticsName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto give_up = [fd](const char* what) {
    log::debug("`onehop stats` cannot read this process: {}: {}", what, std::strerror(errno));
    if (fd >= 0) ::close(fd);
  };
  if (fd < 0) return give_up("memfd_create");
  struct stat status {};
  if (ftruncate(fd, sizeof(StatisticsPage)) != 0 || fstat(fd, &status) != 0) return give_up("ftruncate");
  // What has been counted so far; the rest of the page is zeroed.
  const ssize_t head = offsetof(StatisticsPage, communicators);
  if (pwrite(fd, page_, static_cast<size_t>(head), 0) != head) return give_up("write");
  // In place of the private memory, at the same address: references into it stay.
  if (mmap(page_, sizeof(StatisticsPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
      MAP_FAILED)
    return give_up("mmap");
  // The size is a promise: this process must not be made to fault on its own counters.
  (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  fd_ = fd;
  inode_ = status.st_ino;
}

void StatisticsTable::leave_to_parent() {
  if (fd_ < 0) return;
  // Only system calls: other threads of the parent may have held any lock. The descriptor stays open if it
  // is not onehop's any more: programs close what they did not open.
  if (map_private(page_, MAP_FIXED) == MAP_FAILED) return;
  struct stat status {};
  if (fstat(fd_, &status) == 0 && status.st_ino == inode_) ::close(fd_);
  fd_ = -1;
}

StatisticsSnapshot StatisticsTable::snapshot() const {
  const std::lock_guard lock(changes_);
  StatisticsSnapshot snapshot;
  snapshot.version = page_->version;
  snapshot.pid = page_->pid;
  snapshot.images = page_->images;
  snapshot.elsewhere.add(page_->elsewhere);
  snapshot.gone.add(page_->gone);
  // Only the records in use: looking at the others would give them memory.
  for (size_t i = 0; i < taken_.size(); ++i)
    if (const CommunicatorRecord& record = page_->communicators[i];
        taken_[i] && record.state != RecordState::kFree)
      snapshot.communicators.push_back(listed(record));
  for (const CommunicatorRecord* record : unlisted_) snapshot.communicators.push_back(listed(*record));
  return snapshot;
}

}  // namespace onehop
