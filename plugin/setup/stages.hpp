// How long the parts of a set-up took, for the line that says that onehop is on.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "plugin/log.hpp"

namespace onehop {

class Stages {
 public:
  enum Part : size_t {
    kOpening,
    kMeeting,  ///< the communicator's first collective, which waits for the last rank; NCCL connects for it,
               ///< as it would for the job's own
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

  /// Not onehop's own: how late the last rank is, and how long NCCL takes.
  std::chrono::nanoseconds meeting() const { return spent_[kMeeting]; }
  std::chrono::nanoseconds own() const { return Clock::now() - start_ - meeting(); }

  /// "the ranks met in 12.1 ms, set up in 49.3 ms (loading 9.3, staging 6.0, probing 1.9, measuring 32.1)"
  std::string text() const {
    constexpr std::pair<Part, const char*> kOwn[] = {{kOpening, "opening"},
                                                     {kLoading, "loading"},
                                                     {kStaging, "staging"},
                                                     {kProbing, "probing"},
                                                     {kMeasuring, "measuring"}};
    std::string parts;
    for (const auto& [part, name] : kOwn)
      if (spent_[part] >= std::chrono::microseconds(50))  // else it would read 0.0
        parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", name, ms(spent_[part]));
    return fmt::format("the ranks met in {:.1f} ms, set up in {:.1f} ms ({})", ms(meeting()), ms(own()),
                       parts);
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
