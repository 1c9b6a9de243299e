// The file that ONEHOP_PLAN names, read at most once in the life of a process: a file that changes under a
// running job changes nothing.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "plugin/plan_file/plan_file.hpp"

namespace onehop {

class OwnPlanFile {
 public:
  /// Null if it cannot be used; why() then says why, unless `path` is empty.
  const PlanFile* get(const std::string& path) {
    std::call_once(once_, [&] {
      if (path.empty()) return;
      Result<PlanFile> read = read_plan_file(path);
      if (read)
        file_ = std::make_unique<const PlanFile>(std::move(*read));
      else
        why_ = read.reason();
    });
    return file_.get();
  }
  const std::string& why() const { return why_; }
  /// True for the first to ask: one line is enough.
  bool tells() { return !told_.exchange(true); }

 private:
  std::once_flag once_;
  std::unique_ptr<const PlanFile> file_;
  std::string why_;
  std::atomic<bool> told_{false};
};

}  // namespace onehop
