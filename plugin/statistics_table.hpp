// Where this process keeps its statistics: a page of records, which other processes may read
// (statistics_page.hpp).
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <vector>

#include "plugin/statistics_page.hpp"

namespace onehop {

class StatisticsTable {
 public:
  StatisticsTable();
  StatisticsTable(const StatisticsTable&) = delete;

  /// Calls on communicators that the registry does not know.
  Statistics& elsewhere() { return page_->elsewhere; }

  /// A record that nobody else has, not listed yet.
  CommunicatorRecord& enter();
  /// What there is to say of a record. Lists it.
  void list(CommunicatorRecord&, const StatisticsSnapshot::Listed& facts);
  /// A listed record whose communicator takes no more calls, and why.
  void close(CommunicatorRecord&, const std::string& reason);
  /// Its calls are from now on among those of destroyed communicators.
  void leave(CommunicatorRecord&);

  /// From now on other processes can read the page. Called before the first hook is installed: a process
  /// without NCCL has no page. Where the system denies it there is nothing to read.
  void publish();
  void set_images(size_t count) { page_->images = static_cast<uint32_t>(count); }
  /// In a forked child: the parent's page is left alone.
  void leave_to_parent();

  StatisticsSnapshot snapshot() const;

 private:
  class Change;

  mutable std::mutex changes_;
  StatisticsPage* page_;  ///< never unmapped
  std::vector<bool> taken_;
  std::vector<CommunicatorRecord*> unlisted_;  ///< beyond the page
  bool published_ = false;
  int fd_ = -1;
  ino_t inode_ = 0;
};

}  // namespace onehop
