#pragma once

namespace onehop::bench {

enum ExitCode {
  kGood = 0,
  kSlower = 1,       ///< slower than stock NCCL by more than kTolerance somewhere
  kUsage = 2,        ///< the options make no sense
  kWrong = 3,        ///< a result is wrong: above all else
  kNotMeasured = 4,  ///< a process died, a deadline passed, no NCCL, no plugin, interrupted
};

}  // namespace onehop::bench
