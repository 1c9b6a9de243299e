// From times to a plan. Pure functions of what all ranks know.
#pragma once

#include <string>
#include <vector>

#include "plugin/measure/timings.hpp"
#include "plugin/plan.hpp"

namespace onehop {

/// NCCL keeps a size unless a method is clearly faster there: its slow samples take less than NCCL's fast
/// ones (Time), and at most this part of NCCL's time. The second is the margin where times hardly scatter;
/// the first grows with the noise: with samples that scatter by a fifth, a method that is no better passes
/// about once in 10^4 times. A size at which onehop were slower is worse than one at which it might have been
/// a little faster.
inline constexpr double kMargin = 0.95;
/// Between methods the choice stays with the one that is best at the next smaller size, unless another takes
/// less than this part of its time: noise alone should not change it. With samples that scatter by a fifth,
/// 0.97 let 4 of 100 runs of two ranks choose otherwise than from exact times, 0.93 fewer than one.
inline constexpr double kLoyalty = 0.93;

/// The methods worth measuring again, best first: those that win somewhere, and the next best. At most
/// `most`.
std::vector<Method> leaders(const Timings&, size_t most);

/// Sets the ranges of `plan`: at each measured size what is best there, in between what is best by straight
/// lines from size to size, and NCCL beyond the largest. `timings` has a row for NCCL, and every time.
void choose(const Timings& timings, Plan& plan);

/// The plan, with the time of the largest measured call of each range beside NCCL's.
std::string describe(const Plan&, const Timings&);

}  // namespace onehop
