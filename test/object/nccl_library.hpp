// The real libnccl.so.2, if this machine has one.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "test/object/process.hpp"

namespace onehop::test {

/// Offered in a folder of its own, under the name that programs ask for.
class NcclLibrary {
 public:
  static constexpr const char* kReason = "no libnccl.so.2: set ONEHOP_TEST_LIBNCCL to its path";

  NcclLibrary() {
    const char* given = std::getenv("ONEHOP_TEST_LIBNCCL");
    file_ = given != nullptr && *given != '\0' ? given : LIBNCCL;
    if (file_.empty() || access(file_.c_str(), R_OK) != 0) return;
    std::filesystem::create_symlink(std::filesystem::canonical(file_), path());
    found_ = true;
  }
  bool found() const { return found_; }
  std::string path() const { return folder_ / "libnccl.so.2"; }
  const std::string& folder() const { return folder_.path(); }

  /// Another file with the same content: to the loader another library.
  std::string copy() const {
    const std::string to = folder_ / "libnccl-copy.so";
    std::filesystem::copy_file(std::filesystem::canonical(file_), to);
    return to;
  }

 private:
  std::string file_;
  Folder folder_;
  bool found_ = false;
};

}  // namespace onehop::test
