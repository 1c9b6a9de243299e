// What is made of measured times.
#pragma once

#include <vector>

#include "tools/onehop/nccl_settings.hpp"

namespace onehop::bench {

/// "Never slower" allows this much, on the medians.
inline constexpr double kTolerance = 1.02;
using tool::kClearly;

/// The middle value, or the mean of the two in the middle. Not of nothing.
double median(std::vector<double> values);

/// The smallest value that is not below `share` of all, so the 0.99 of fewer than 100 values is the largest.
double percentile(std::vector<double> values, double share);

/// The shortest over the ranks, sample by sample. A rank's time begins when it starts; the one that starts
/// last waits for nobody. Cut to the fewest samples that a rank has.
std::vector<double> shortest(const std::vector<std::vector<double>>& of_ranks);

/// The longest over the ranks, sample by sample: for times in which no rank waits for another.
std::vector<double> longest(const std::vector<std::vector<double>>& of_ranks);

enum class Verdict { kFaster, kAsFast, kSlower };

/// Of onehop's median beside NCCL's.
Verdict judge(double onehop_us, double nccl_us);

const char* text_of(Verdict verdict);

}  // namespace onehop::bench
