// The measuring itself: all sides in turn, case after case.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/bench/figures.hpp"
#include "tools/onehop/bench/side_spec.hpp"

namespace onehop::bench {

struct SideFigures {
  double us = 0, us_p99 = 0;            ///< per call
  double host_us = 0, host_us_p99 = 0;  ///< eager only
  size_t samples = 0, wrong = 0;
  bool taken = false;  ///< by onehop
};

struct CaseFigures {
  Case what;
  std::vector<SideFigures> sides;  ///< in the order of Outcome::sides
  int looks = 1;                   ///< what seems slower is measured anew, up to four times in all

  const SideFigures& nccl() const { return sides[0]; }
  const SideFigures& onehop() const { return sides[1]; }
  Verdict verdict() const { return judge(onehop().us, nccl().us); }

  /// Further looks at the same case stand for themselves, but what was wrong once stays wrong.
  void replace_by(CaseFigures anew) {
    anew.looks += looks;
    for (size_t s = 0; s < sides.size(); ++s) anew.sides[s].wrong += sides[s].wrong;
    *this = std::move(anew);
  }
};

struct Outcome {
  std::vector<SideSpec> sides;
  int ranks = 0, processes = 0, gpus = 0, ranks_per_gpu = 0;
  std::string gpu, links, onehop;
  int cuda = 0, nccl = 0;
  bool standin = false;
  bool on = false;     ///< the communicator, and if not:
  std::string reason;  ///< why it is off
  size_t max_bytes = 0;
  /// The first call of a communicator, for which NCCL connects, alone and with onehop, which sets up in it;
  /// on the slowest process.
  double nccl_first_call_ms = 0, first_call_ms = 0;
  double set_up_ms = 0;  ///< of onehop alone, on the slowest of the ranks that are first in their process
  uint64_t staging_bytes = 0;  ///< of onehop, for one rank
  std::vector<CaseFigures> cases;
  std::vector<Skipped> skipped;
  size_t left = 0;       ///< cases that were not come to
  std::string why_left;  ///< or, if that is 0, why what seemed slower was not measured anew
};

Result<Outcome> run(const Options& options);

}  // namespace onehop::bench
