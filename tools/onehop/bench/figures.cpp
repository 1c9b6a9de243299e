#include "tools/onehop/bench/figures.hpp"

#include <algorithm>
#include <cmath>

namespace onehop::bench {
namespace {

template <class Choose>
std::vector<double> over_ranks(const std::vector<std::vector<double>>& of_ranks, Choose&& choose) {
  if (of_ranks.empty()) return {};
  std::vector<double> chosen = of_ranks.front();
  for (const std::vector<double>& samples : of_ranks) {
    chosen.resize(std::min(chosen.size(), samples.size()));
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = choose(chosen[i], samples[i]);
  }
  return chosen;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

std::vector<double> shortest(const std::vector<std::vector<double>>& of_ranks) {
  return over_ranks(of_ranks, [](double a, double b) { return std::min(a, b); });
}

std::vector<double> longest(const std::vector<std::vector<double>>& of_ranks) {
  return over_ranks(of_ranks, [](double a, double b) { return std::max(a, b); });
}

Verdict judge(double onehop_us, double nccl_us) {
  const double ratio = onehop_us / nccl_us;
  if (ratio > kTolerance) return Verdict::kSlower;
  return ratio <= kClearly ? Verdict::kFaster : Verdict::kAsFast;
}

const char* text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kAsFast:
      return "as fast";
    case Verdict::kSlower:
      return "SLOWER";
  }
  return "";
}

}  // namespace onehop::bench
