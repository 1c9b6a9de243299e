#include "plugin/setup/planned.hpp"

#include <algorithm>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"

namespace onehop {
namespace {

void say_unused(const std::string& why) {
  const Settings& settings = globals().settings;
  const char* instead = settings.algo != Algo::kAuto              ? "ONEHOP_ALGO decides"
                        : settings.measure == MeasureChoice::kOff ? "guesses are used (ONEHOP_MEASURE=off)"
                                                                  : "onehop measures";
  log::warn("the plan file {} is not used: {}; {} instead", settings.plan, why, instead);
}

}  // namespace

bool shares_plan_file(const Member& m, std::span<const Hello> table) {
  const Settings& settings = globals().settings;
  OwnPlanFile& file = globals().plan_file;
  const PlanFile* own = file.get(settings.plan);
  if (own == nullptr) {
    // The first rank speaks for all that have the same trouble.
    const bool alone =
        std::any_of(table.begin(), table.end(), [](const Hello& hello) { return hello.plan != 0; });
    if (!settings.plan.empty() && (alone || m.first_of_node) && file.tells()) say_unused(file.why());
    return false;
  }
  for (size_t r = 0; r < table.size(); ++r) {
    if (table[r].plan == own->hash) continue;
    if (m.first_of_node)
      say_unused(fmt::format("rank {} has {}", r, table[r].plan == 0 ? "none" : "another one"));
    return false;
  }
  if (settings.algo == Algo::kAuto) return true;
  if (m.first_of_node) say_unused("a method is named");
  return false;
}

void plan_from_file(Member& m) {
  const PlanFile* file = globals().plan_file.get(globals().settings.plan);
  if (!m.planned || file == nullptr) return;
  m.planned->machine[Fact::kStaging] = name_of(m.kind);
  const Result<const FilePlan*> found = find_plan(*file, m.planned->machine);
  Status used = found ? Status{} : Status{found.error()};
  if (used) used = use_plan(**found, m.planned->most_blocks, globals().settings, m.plan, m.timings);
  m.staging->view().islands = m.plan.islands;
  m.from_file = static_cast<bool>(used);
  if (!used && m.first_of_node) say_unused(used.reason());
}

}  // namespace onehop
