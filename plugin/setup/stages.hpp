// How long the parts of a set-up took, for the line that says that onehop is on.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "plugin/log.hpp"

namespace onehop {

class Stages {
 public:
  enum Part : size_t {
    kOpening,
    kMeeting,  ///< the communicator's first collective: NCCL connects for it, and it waits for the last rank
    kLoading,  ///< of the kernels, once for each GPU and process
    kStaging,
    kProbing,
    kMeasuring,
    kParts
  };

  /// What came since the part before it was this one; a part may come more than once.
  void done(Part part) {
    const Clock::time_point now = Clock::now();
    spent_[part] += now - last_;
    last_ = now;
  }

  std::chrono::nanoseconds total() const { return Clock::now() - start_; }

  /// "set up in 61.4 ms (meeting 12.1, loading 9.3, staging 6.0, probing 1.9, measuring 32.1)"
  std::string text() const {
    constexpr std::array<const char*, kParts> kNames = {"opening", "meeting", "loading",
                                                        "staging", "probing", "measuring"};
    std::string parts;
    for (size_t part = 0; part < kParts; ++part)
      if (spent_[part] >= std::chrono::microseconds(50))  // else it would read 0.0
        parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", kNames[part], ms(spent_[part]));
    return fmt::format("set up in {:.1f} ms ({})", ms(total()), parts);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double ms(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  std::array<std::chrono::nanoseconds, kParts> spent_{};
};

}  // namespace onehop
