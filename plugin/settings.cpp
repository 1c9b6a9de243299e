#include "plugin/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kernels/protocol/layout.hpp"
#include "plugin/hash.hpp"
#include "plugin/one_line.hpp"

namespace onehop {
namespace {

template <class Enum>
struct Choice {
  std::string_view text;
  Enum value;
};

template <class Enum, size_t N>
bool parse_choice(const Choice<Enum> (&choices)[N], std::string_view text, Enum& value) {
  for (const auto& choice : choices) {
    if (choice.text != text) continue;
    value = choice.value;
    return true;
  }
  return false;
}

/// The first text of a value is its canonical one.
template <class Enum, size_t N>
std::string show_choice(const Choice<Enum> (&choices)[N], Enum value) {
  for (const auto& choice : choices)
    if (choice.value == value) return std::string(choice.text);
  return "?";
}

constexpr Choice<bool> kSwitch[] = {{"0", false}, {"1", true}};
constexpr Choice<Algo> kAlgos[] = {{"auto", Algo::kAuto},
                                   {"oneshot", Algo::kOneShot},
                                   {"1stage", Algo::kOneShot},
                                   {"twoshot", Algo::kTwoShot},
                                   {"2stage", Algo::kTwoShot},
                                   {"oneshot-push", Algo::kOneShotPush},
                                   {"twoshot-push", Algo::kTwoShotPush},
                                   {"oneshot-staged", Algo::kOneShotStaged},
                                   {"twoshot-staged", Algo::kTwoShotStaged},
                                   {"oneshot-pull", Algo::kOneShotPull},
                                   {"twoshot-pull", Algo::kTwoShotPull},
                                   {"islands", Algo::kIslands}};
constexpr Choice<StagingChoice> kStagings[] = {
    {"auto", StagingChoice::kAuto}, {"p2p", StagingChoice::kP2p}, {"host", StagingChoice::kHost}};
constexpr Choice<MeasureChoice> kMeasures[] = {
    {"off", MeasureChoice::kOff}, {"quick", MeasureChoice::kQuick}, {"full", MeasureChoice::kFull}};
constexpr Choice<LogLevel> kLevels[] = {{"off", LogLevel::kOff},     {"error", LogLevel::kError},
                                        {"warn", LogLevel::kWarn},   {"info", LogLevel::kInfo},
                                        {"debug", LogLevel::kDebug}, {"trace", LogLevel::kTrace}};

bool parse_number(std::string_view text, uint64_t largest, uint64_t& value) {
  uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || parsed > largest) return false;
  value = parsed;
  return true;
}

constexpr uint64_t kLargestMaxBytes = 8 << 20;

/// A number of bytes, with K or M behind it for KiB or MiB.
bool parse_bytes(std::string_view text, uint64_t& value) {
  uint64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? 1 << 10 : 1 << 20;
    text.remove_suffix(1);
  }
  uint64_t number = 0;
  if (!parse_number(text, kLargestMaxBytes / unit, number)) return false;
  value = number * unit;
  return true;
}

constexpr SettingRow kRows[] = {
    {"ONEHOP_ENABLE", "0 or 1", "1", false,
     "0 leaves every call to NCCL. If it is 0 on some ranks only, the others decline too.",
     [](std::string_view t, Settings& s) { return parse_choice(kSwitch, t, s.enable); },
     [](const Settings& s) { return show_choice(kSwitch, s.enable); }},
    {"ONEHOP_ALGO",
     "auto, oneshot (or 1stage), twoshot (or 2stage), oneshot-push, twoshot-push, oneshot-staged, "
     "twoshot-staged, oneshot-pull, twoshot-pull or islands",
     "auto", true,
     "The method that serves calls; auto lets onehop choose. oneshot and twoshot are the push forms, or in "
     "host "
     "memory the pull forms. A communicator that the method cannot serve is left to NCCL, and a line says "
     "so.",
     [](std::string_view t, Settings& s) { return parse_choice(kAlgos, t, s.algo); },
     [](const Settings& s) { return show_choice(kAlgos, s.algo); }},
    {"ONEHOP_ISLANDS", "auto, or the ranks of each island, as in 0-3/4-7 or 0,2/1,3", "auto", true,
     "How the method islands divides a communicator with so many ranks. auto: two islands of consecutive "
     "ranks.",
     [](std::string_view t, Settings& s) { return parse_islands(t, s.islands); },
     [](const Settings& s) { return show_islands(s.islands); }},
    {"ONEHOP_MAX_BYTES", "a number of bytes from 0 to 8M, K and M allowed behind it", "512K", true,
     "Calls with more bytes go to NCCL. A call that is larger than the staging memory is served in pieces.",
     [](std::string_view t, Settings& s) { return parse_bytes(t, s.max_bytes); },
     [](const Settings& s) { return std::to_string(s.max_bytes); }},
    {"ONEHOP_STAGING", "auto, p2p or host", "auto", true,
     "Where the staging memory is: p2p is device memory that the peers use directly, host is host memory "
     "that all "
     "ranks share. auto tries them in this order.",
     [](std::string_view t, Settings& s) { return parse_choice(kStagings, t, s.staging); },
     [](const Settings& s) { return show_choice(kStagings, s.staging); }},
    {"ONEHOP_MEASURE", "off, quick or full", "quick", true,
     "Whether a communicator's methods are measured against NCCL when it is set up, and those sizes left to "
     "NCCL "
     "at which it is as fast. off takes guesses for granted; full measures more sizes, and more often. A "
     "method that "
     "ONEHOP_ALGO names is not measured.",
     [](std::string_view t, Settings& s) { return parse_choice(kMeasures, t, s.measure); },
     [](const Settings& s) { return show_choice(kMeasures, s.measure); }},
    {"ONEHOP_PLAN", "a path", "", false,
     "A plan file, as `onehop tune` writes it. Where it was made for this machine and every rank has the "
     "same "
     "file, nothing is measured; else a line says why it is not used.",
     [](std::string_view t, Settings& s) { return s.plan = t, !t.empty(); },
     [](const Settings& s) { return s.plan; }},
    {"ONEHOP_TIMEOUT_S", "a number of seconds from 0 to 1000000", "1800", true,
     "Longest wait of a kernel for a peer; then the communicator fails with an asynchronous error. 0: no "
     "limit.",
     [](std::string_view t, Settings& s) { return parse_number(t, 1000000, s.timeout_s); },
     [](const Settings& s) { return std::to_string(s.timeout_s); }},
    {"ONEHOP_LOG", "off, error, warn, info, debug or trace", "info", false,
     "What is logged, to standard error or ONEHOP_LOG_FILE.",
     [](std::string_view t, Settings& s) { return parse_choice(kLevels, t, s.log); },
     [](const Settings& s) { return show_choice(kLevels, s.log); }},
    {"ONEHOP_LOG_FILE", "a path", "", false,
     "Log to this file instead of standard error. %p becomes the process id.",
     [](std::string_view t, Settings& s) { return s.log_file = t, !t.empty(); },
     [](const Settings& s) { return s.log_file; }},
    {"ONEHOP_STATS", "0 or 1", "0", false,
     "1 logs at exit what was taken and what was passed to NCCL, and why.",
     [](std::string_view t, Settings& s) { return parse_choice(kSwitch, t, s.stats); },
     [](const Settings& s) { return show_choice(kSwitch, s.stats); }},
    {"ONEHOP_STATS_FILE", "a path", "", false,
     "Write the statistics at exit to this file, as JSON. %p becomes the process id.",
     [](std::string_view t, Settings& s) { return s.stats_file = t, !t.empty(); },
     [](const Settings& s) { return s.stats_file; }},
};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row.back();
}

std::string unknown_variable(std::string_view name) {
  // What is much longer than any name is near to none; its beginning is enough.
  const std::string_view beginning = name.substr(0, 40);
  const SettingRow* nearest = &kRows[0];
  size_t shortest = SIZE_MAX;
  for (const SettingRow& row : kRows) {
    const size_t distance = edit_distance(beginning, row.name);
    if (distance >= shortest) continue;
    shortest = distance;
    nearest = &row;
  }
  return one_line(std::string(name)) + " is no setting of onehop and has no effect; did you mean " +
         nearest->name + "?";
}

}  // namespace

bool parse_islands(std::string_view text, std::vector<uint8_t>& islands) {
  islands.clear();
  if (text == "auto") return true;
  constexpr uint8_t kNone = 0xFF;
  std::vector<uint8_t> found(kMaxRanks, kNone);
  uint32_t island = 0, size = 0, ranks = 0;
  while (true) {
    const size_t end = text.find_first_of("/,");
    const std::string_view item = text.substr(0, end);
    const size_t dash = item.find('-');
    uint64_t first = 0, last = 0;
    if (!parse_number(item.substr(0, dash), kMaxRanks - 1, first)) return false;
    last = first;
    if (dash != std::string_view::npos && !parse_number(item.substr(dash + 1), kMaxRanks - 1, last))
      return false;
    for (uint64_t rank = first; rank <= last; ++rank) {
      if (found[rank] != kNone || ++size > kMaxHopRanks) return false;
      found[rank] = static_cast<uint8_t>(island);
      ++ranks;
    }
    if (first > last || size == 0) return false;
    if (end == std::string_view::npos) break;
    if (text[end] == '/') ++island, size = 0;
    text.remove_prefix(end + 1);
  }
  found.resize(ranks);
  if (island == 0 || std::find(found.begin(), found.end(), kNone) != found.end()) return false;
  islands = std::move(found);
  return true;
}

std::string show_islands(std::span<const uint8_t> islands) {
  if (islands.empty()) return "auto";
  std::string text;
  for (uint32_t island = 0; island <= *std::max_element(islands.begin(), islands.end()); ++island) {
    if (island > 0) text += '/';
    bool first = true;
    for (size_t rank = 0; rank < islands.size(); ++rank) {
      if (islands[rank] != island) continue;
      if (!first) text += ',';
      first = false;
      text += std::to_string(rank);
    }
  }
  return text;
}

std::span<const SettingRow> setting_rows() {
  return kRows;
}

SettingsReport read_settings(const char* const* environment) {
  SettingsReport report;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    if (!entry.starts_with("ONEHOP_") || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (name.starts_with("ONEHOP_STANDIN_") || name.starts_with("ONEHOP_TEST_")) continue;
    const auto row = std::ranges::find_if(kRows, [&](const SettingRow& r) { return r.name == name; });
    if (row == std::end(kRows))
      report.warnings.push_back(unknown_variable(name));
    else if (!row->parse(value, report.settings))
      report.errors.push_back(std::string(name) + "=" + one_line(std::string(value)) +
                              ": not understood; allowed: " + row->allowed +
                              "; onehop stays off and NCCL serves every call");
  }
  return report;
}

SettingsReport settings_of_privileged() {
  SettingsReport report;
  report.errors.emplace_back(
      "this program has more rights than the user who started it: its environment is not read, onehop stays "
      "off and NCCL serves every call");
  return report;
}

uint64_t settings_hash(const Settings& settings) {
  Hash hash;
  for (const SettingRow& row : kRows)
    if (row.agree) hash.add(row.name).add(row.show(settings));
  return hash.value();
}

std::string settings_markdown() {
  std::string text =
      "# Settings\n\n"
      "Made by `onehop help env --markdown` from the table in `plugin/settings.cpp`; do not edit.\n\n"
      "All settings are environment variables, read when the plugin is loaded. A value that is not allowed "
      "gives one error line, and\n"
      "onehop stays off; nothing is guessed. Variables marked *agree* must have the same meaning on all "
      "ranks of a communicator, else\n"
      "onehop declines that communicator and says so.\n\n"
      "| variable | allowed | default | agree | what it does |\n|---|---|---|---|---|\n";
  for (const SettingRow& row : kRows) {
    text += std::string("| `") + row.name + "` | " + row.allowed + " | " +
            (*row.fallback != '\0' ? std::string("`") + row.fallback + "`" : std::string("not set")) + " | " +
            (row.agree ? "yes" : "") + " | " + row.text + " |\n";
  }
  return text;
}

}  // namespace onehop
