#include "tools/onehop/tune_rivals.hpp"

#include <algorithm>

#include "tools/onehop/nccl_settings.hpp"
#include "tools/onehop/units.hpp"

namespace onehop::tune {
namespace {

/// Where prefill's calls are.
constexpr uint64_t kLarger[] = {1 << 20, 4 << 20};

bool is_nccls(const FilePlan& plan, uint64_t bytes) {
  const auto range = std::find_if(plan.ranges.begin(), plan.ranges.end(),
                                  [&](const FilePlan::Range& r) { return bytes <= r.up_to; });
  return range == plan.ranges.end() || !range->method;
}

/// Null unless it was clearly faster.
const RivalMeasured* faster(const RivalStep& step, const std::vector<RivalMeasured>& results) {
  for (const RivalMeasured& m : results)
    if (m.step == step && m.counts() && m.us <= tool::kClearly * m.nccl_us) return &m;
  return nullptr;
}

}  // namespace

std::string describe(const RivalStep& step) {
  return "NCCL with " + step.settings + " at " + std::to_string(step.bytes) + " bytes";
}

std::vector<uint64_t> sizes_left_to_nccl(const FilePlan& plan, const std::vector<uint64_t>& tuned,
                                         bool share_gpus) {
  std::vector<uint64_t> sizes;
  for (const uint64_t bytes : tuned)
    if (is_nccls(plan, bytes)) sizes.push_back(bytes);
  for (const uint64_t bytes : kLarger)
    if (!share_gpus && bytes > tuned.back()) sizes.push_back(bytes);
  return sizes;
}

std::vector<RivalStep> first_rivals(const std::vector<std::string>& settings,
                                    const std::vector<uint64_t>& sizes) {
  std::vector<RivalStep> steps;
  for (const std::string& one : settings)
    for (const uint64_t bytes : sizes) steps.push_back({1, one, bytes});
  return steps;
}

std::vector<RivalStep> second_rivals(const std::vector<RivalStep>& first,
                                     const std::vector<RivalMeasured>& results) {
  std::vector<RivalStep> steps;
  for (const RivalStep& step : first)
    if (faster(step, results) != nullptr) steps.push_back({2, step.settings, step.bytes});
  return steps;
}

std::string suggestions(const std::vector<RivalStep>& second, const std::vector<RivalMeasured>& results) {
  std::string lines, settings;
  for (const RivalStep& step : second) {
    const RivalMeasured* m = faster(step, results);
    if (m == nullptr) continue;
    if (step.settings == settings)
      lines += "; ";
    else
      lines += (lines.empty() ? "  " : "\n  ") + step.settings + ": ";
    settings = step.settings;
    lines += tool::size_text(step.bytes) + " " + tool::microseconds(m->nccl_us) + " -> " +
             tool::microseconds(m->us);
  }
  if (lines.empty()) return "For calls that onehop leaves to NCCL no setting of NCCL was clearly faster.\n";
  return tool::kSuggestionsFollow + lines + "\n";
}

}  // namespace onehop::tune
