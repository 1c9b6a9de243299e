// Running a test program in an environment of its own, and what came of it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "test/folder.hpp"

namespace onehop::test {

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = -1;       ///< exit status; 1000 + the signal that ended it; 2000 if it did not end in time
  std::string out, err;  ///< what it wrote

  /// Lines of `out`.
  std::vector<std::string> lines() const;
};

/// Runs a program with these variables, a usual PATH, an empty home folder, and nothing else: what the tester
/// has set must not decide a test.
Outcome run(const std::vector<std::string>& command, const Environment&,
            std::chrono::seconds limit = std::chrono::seconds(60));

/// The whole file; empty if there is none.
std::string read_file(const std::string& path);

/// How many lines of a text contain another.
int lines_with(const std::string& text, const std::string& part);

}  // namespace onehop::test
