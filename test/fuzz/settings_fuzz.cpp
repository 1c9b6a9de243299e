// The environment, as the kernel hands it over: entries, each ended by a zero byte. Then the plans that
// follow from the settings.
#include <algorithm>
#include <vector>

#include "plugin/plan.hpp"
#include "plugin/settings.hpp"
#include "test/fuzz/fuzz.hpp"
#include "test/settings_of.hpp"

namespace onehop::fuzz {
namespace {

void check_messages(const SettingsReport& report) {
  for (const std::string& error : report.errors) {
    require_line(error);
    const auto rows = setting_rows();
    require(std::any_of(rows.begin(), rows.end(),
                        [&](const SettingRow& row) {
                          return error.starts_with(std::string(row.name) + "=") &&
                                 error.find(std::string("allowed: ") + row.allowed) != std::string::npos;
                        }),
            "an error names the variable and what is allowed", error);
  }
  for (const std::string& warning : report.warnings) {
    require_line(warning);
    require(warning.starts_with("ONEHOP_"), "a warning names the variable", warning);
  }
}

/// What was understood, printed and read again, is the same.
void check_round_trip(const Settings& settings) {
  std::vector<std::string> entries;
  for (const SettingRow& row : setting_rows())
    if (const std::string shown = row.show(settings); !shown.empty())
      entries.push_back(std::string(row.name) + "=" + shown);
  const SettingsReport again = test::settings_of(entries);
  require(again.errors.empty() && again.warnings.empty(), "what a setting shows can be read");
  for (const SettingRow& row : setting_rows())
    require(row.show(again.settings) == row.show(settings), "what was read again is equal", row.name);
  require(settings_hash(again.settings) == settings_hash(settings), "equal settings have equal hashes");
}

void check_plan(const Settings& settings, StagingKind kind, uint32_t ranks) {
  const Result<Plan> made = make_plan(settings, kind, ranks);
  if (!made) {
    require(!made.reason().empty(), "a missing plan has a reason");
    return require_line(made.reason());
  }
  const Plan& plan = *made;
  require(plan.layout.bytes() <= kStagingBudget, "the staging memory is within its budget");
  require(plan.count <= plan.ranges.size() && plan.candidate_count <= plan.candidates.size(), "it fits");
  require(plan.max_bytes() <= settings.max_bytes, "ONEHOP_MAX_BYTES is the most");
  for (uint32_t r = 0; r < plan.count; ++r) {
    const Plan::Range& range = plan.ranges[r];
    require(r == 0 || plan.ranges[r - 1].max_bytes < range.max_bytes, "ranges ascend");
    if (!range.method) continue;
    const auto end = plan.candidates.begin() + plan.candidate_count;
    require(std::find(plan.candidates.begin(), end, *range.method) != end,
            "memory is laid out for the method");
    for (uint32_t e = 0; e < kElements; ++e)
      require(plan.piece(*range.method, static_cast<Element>(e)) > 0, "an operation carries something");
  }
  for (uint32_t a = 0; a < ranks; ++a)
    for (uint32_t b = 0; b < a; ++b)
      require(plan.needs(a, b) == plan.needs(b, a), "who needs a peer is needed by it");
  require_line(describe(plan));
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  std::vector<std::string> entries;
  for (std::string_view left = text_of(data, size); !left.empty();) {
    const size_t end = std::min(left.find('\0'), left.size());
    entries.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  const SettingsReport report = test::settings_of(entries);
  check_messages(report);
  require(report.errors.size() + report.warnings.size() <= entries.size(), "one message for each entry");
  if (!report.errors.empty()) return 0;
  check_round_trip(report.settings);
  const auto divided = static_cast<uint32_t>(report.settings.islands.size());
  const uint32_t ranks = divided != 0 ? divided : static_cast<uint32_t>(2 + size % (kMaxRanks - 1));
  for (const StagingKind kind : kStagingKinds) check_plan(report.settings, kind, ranks);
  return 0;
}
