// How far `onehop tune` is, and how long it will take.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "tools/onehop/progress_line.hpp"

namespace onehop::tune {

class ProgressBar {
 public:
  void show(size_t done, size_t all, const std::string& what) {
    if (began_ == Clock::time_point{}) began_ = Clock::now(), at_ = done;
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    const size_t here = done - at_;
    const int left =
        here == 0 ? 0
                  : static_cast<int>(seconds / static_cast<double>(here) * static_cast<double>(all - done));
    constexpr size_t kWidth = 20;
    const size_t full = done * kWidth / std::max<size_t>(all, 1);
    char time[32];
    std::snprintf(time, sizeof(time), ", %d:%02d left", left / 60, left % 60);
    const std::string at = std::to_string(done), of = std::to_string(all);
    line_.show("[" + std::string(full, '#') + std::string(kWidth - full, ' ') + "] " + at + "/" + of + time +
                   "  " + what,
               at + " of " + of + time + ": " + what);
  }
  /// What is shown next is another matter, with a time of its own.
  void begin_again() { began_ = Clock::time_point{}; }
  void say(const std::string& line) const { line_.say(line); }

 private:
  using Clock = std::chrono::steady_clock;

  tool::ProgressLine line_{true};
  Clock::time_point began_{};
  size_t at_ = 0;  ///< steps that were done before
};

}  // namespace onehop::tune
