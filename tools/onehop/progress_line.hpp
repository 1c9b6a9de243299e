// How far a command is, on standard error: on a terminal in a line that is written over, elsewhere in a line
// now and then.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace onehop::tool {

class ProgressLine {
 public:
  /// `at_once`: elsewhere the first line comes at once, not only when the command has taken a while.
  explicit ProgressLine(bool at_once) {
    if (!at_once) last_ = Clock::now();
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& on_terminal, const std::string& elsewhere) {
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s", on_terminal.c_str());
    } else if (const auto now = Clock::now(); now - last_ > kBetween) {
      std::fprintf(stderr, "%s\n", elsewhere.c_str());
      last_ = now;
    }
    std::fflush(stderr);
  }
  /// A line that stays.
  void say(const std::string& line) const {
    std::fprintf(stderr, "%s%s\n", terminal_ ? "\r\033[K" : "", line.c_str());
  }
  void clear() const {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetween{10};

  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  Clock::time_point last_{};
};

}  // namespace onehop::tool
