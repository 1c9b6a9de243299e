// A job that loses a process at a chosen place, and what must be true of the others and of the node
// afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onehop::node {

/// What happens. All of it follows from a number.
struct KillPoint {
  uint64_t number = 0;
  int ranks = 2;
  std::vector<int> victims;
  double after_s = 0;    ///< the first victim is killed this long after the start ...
  std::string place;     ///< ... or where ONEHOP_STANDIN_KILL says
  bool patient = false;  ///< survivors get SIGTERM when those that onehop held up have left by themselves
  bool exits = false;    ///< on SIGTERM, survivors call exit()
  bool in_host = false, preloaded = false, measured = false;
  std::string algo;

  /// Points 0 .. kPlaces-1 walk through the places of set-up, one by one; the rest are random.
  static KillPoint of(uint64_t number);
  std::string text() const;
};

/// What came of it.
struct KillOutcome {
  std::string problem;      ///< empty: all is as it must be
  std::string place;        ///< where the victim was, if it was killed at a place
  int left_themselves = 0;  ///< survivors that noticed the loss, and left
  int ended = 0;            ///< survivors that SIGTERM ended
  double gone_s = 0;        ///< from the first death to the last
};

/// Runs the job, and then the same job without a death.
KillOutcome run_kill_point(const KillPoint&);

}  // namespace onehop::node
