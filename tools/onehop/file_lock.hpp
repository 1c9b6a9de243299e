// One program at a time works on a file that is replaced whole: what is locked is NAME.lock beside it.
#pragma once

#include <string>

#include "plugin/result.hpp"
#include "plugin/staging/fd.hpp"

namespace onehop {

/// Held until it is destroyed, or its process ends in whatever way; what that leaves behind is used by the
/// next.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&&) = default;
  ~FileLock();

  /// Never waits: nothing if another process holds it.
  static Result<FileLock> take(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  std::string name_;
  Fd file_;
};

}  // namespace onehop
