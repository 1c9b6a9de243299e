#include "tools/onehop/bench/report.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

#include "tools/onehop/bench/table.hpp"
#include "tools/onehop/units.hpp"

namespace onehop::bench {
namespace {

std::string version_text(int version) {
  // 2.8 and older counted in hundreds.
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2fx", ratio);
  return text;
}

std::string milliseconds(double ms) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", ms);
  return text;
}

std::string mode_text(const Case& what) {
  std::string text;
  switch (what.mode) {
    case Mode::kGraph:
      text = "In a graph, replayed on a stream of its own";
      break;
    case Mode::kGraphDefault:
      text = "In a graph, replayed on the default stream";
      break;
    case Mode::kEager:
      text = "Eager, back to back";
      break;
  }
  return text + "; " + what.type->name + (what.in_place ? ", in place" : ", out of place");
}

bool same_table(const Case& a, const Case& b) {
  return a.mode == b.mode && a.type == b.type && a.in_place == b.in_place;
}

size_t wrong_in(const CaseFigures& figures) {
  size_t wrong = 0;
  for (const SideFigures& side : figures.sides) wrong += side.wrong;
  return wrong;
}

std::string verdict_text(const Outcome& outcome, const CaseFigures& figures) {
  std::string text = wrong_in(figures) > 0 ? "WRONG" : text_of(figures.verdict());
  if (!figures.onehop().taken) text += ", passed to NCCL";
  if (figures.looks > 1) text += ", look " + std::to_string(figures.looks);
  for (size_t s = 0; s < figures.sides.size(); ++s)
    if (figures.sides[s].wrong > 0)
      text +=
          "; " + outcome.sides[s].name + ": " + std::to_string(figures.sides[s].wrong) + " elements wrong";
  return text;
}

/// The settings of a rival, short.
std::string short_name(const SideSpec& side) {
  std::string text = side.method.empty() ? "default" : side.method;
  for (size_t at; (at = text.find("NCCL_")) != std::string::npos;) text.erase(at, 5);
  return text;
}

bool is_rival(const SideSpec& side) {
  return !side.onehop && !side.settings.empty();
}

void add_tables(const Outcome& outcome, std::string& text) {
  const bool rivals = std::any_of(outcome.sides.begin(), outcome.sides.end(), is_rival);
  size_t control = 0;
  for (size_t s = 2; s < outcome.sides.size(); ++s)
    if (!is_rival(outcome.sides[s])) control = s;
  for (size_t start = 0; start < outcome.cases.size();) {
    const CaseFigures& first = outcome.cases[start];
    text.append("\n").append(mode_text(first.what)).append(". µs per call, median and p99:\n\n");
    Table table({"size", "calls", "NCCL", "p99", "onehop", "p99", "speed-up", "NCCL again", "best NCCL",
                 "over it", "host: NCCL", "onehop", "ms a step: NCCL", "onehop", "verdict", "as in"});
    size_t end = start;
    for (; end < outcome.cases.size() && same_table(first.what, outcome.cases[end].what); ++end) {
      const CaseFigures& one = outcome.cases[end];
      const size_t best = best_nccl(outcome, one);
      const bool host = one.what.mode == Mode::kEager;
      const auto step = [&](const SideFigures& side) {
        if (one.what.note.empty() || host) return std::string();
        return milliseconds(side.us * static_cast<double>(one.what.calls) / 1000);
      };
      table.add({human(one.what.bytes), std::to_string(one.what.calls), tool::microseconds(one.nccl().us),
                 tool::microseconds(one.nccl().us_p99), tool::microseconds(one.onehop().us),
                 tool::microseconds(one.onehop().us_p99), ratio_text(one.nccl().us / one.onehop().us),
                 control > 0 ? tool::microseconds(one.sides[control].us) : "",
                 rivals ? tool::microseconds(one.sides[best].us) + " " + short_name(outcome.sides[best]) : "",
                 rivals ? ratio_text(one.sides[best].us / one.onehop().us) : "",
                 host ? tool::microseconds(one.nccl().host_us) : "",
                 host ? tool::microseconds(one.onehop().host_us) : "", step(one.nccl()), step(one.onehop()),
                 verdict_text(outcome, one), one.what.note});
    }
    text += table.text();
    start = end;
  }
}

/// One sentence for each reason.
std::vector<std::string> not_measured(const Outcome& outcome) {
  struct Left {
    std::string modes;
    size_t least = SIZE_MAX, most = 0;
  };
  std::map<std::string, Left> reasons;
  for (const Skipped& one : outcome.skipped) {
    Left& left = reasons[one.why];
    const std::string mode = name_of(one.what.mode);
    if ((", " + left.modes + ",").find(", " + mode + ",") == std::string::npos)
      left.modes += (left.modes.empty() ? "" : ", ") + mode;
    left.least = std::min(left.least, one.what.bytes);
    left.most = std::max(left.most, one.what.bytes);
  }
  std::vector<std::string> lines;
  lines.reserve(reasons.size() + 1);
  for (const auto& [why, left] : reasons)
    lines.push_back(left.modes + " of " + human(left.least) +
                    (left.most > left.least ? " to " + human(left.most) : std::string()) + ": " + why);
  const std::string why = outcome.why_left.substr(0, outcome.why_left.find('\n'));
  if (outcome.left > 0)
    lines.push_back("the last " + std::to_string(outcome.left) + " of " +
                    std::to_string(outcome.cases.size() + outcome.left) + " cases: " + why);
  else if (!why.empty())
    lines.push_back("what seemed slower, with other communicators: " + why);
  return lines;
}

/// By how much settings of NCCL help where onehop leaves the call to NCCL, or is not faster.
void add_suggestions(const Outcome& outcome, std::string& text) {
  if (outcome.standin) return;
  std::string lines;
  for (size_t s = 2; s < outcome.sides.size(); ++s) {
    if (!is_rival(outcome.sides[s])) continue;
    std::string sizes;
    for (const CaseFigures& one : outcome.cases) {
      const bool left = !one.onehop().taken || one.verdict() != Verdict::kFaster;
      if (!left || one.sides[s].us > kClearly * one.nccl().us) continue;
      sizes += (sizes.empty() ? "" : "; ") + human(one.what.bytes) + " " + name_of(one.what.mode) + " " +
               tool::microseconds(one.nccl().us) + " -> " + tool::microseconds(one.sides[s].us);
    }
    if (!sizes.empty()) lines += "  " + outcome.sides[s].method + ": " + sizes + "\n";
  }
  if (lines.empty()) return;
  text += std::string("\n") + tool::kSuggestionsFollow + lines;
}

void add_verdict(const Outcome& outcome, std::string& text) {
  size_t counts[3] = {}, wrong = 0;
  for (const CaseFigures& one : outcome.cases) {
    ++counts[static_cast<size_t>(one.verdict())];
    wrong += wrong_in(one);
  }
  std::ostringstream line;
  line << "\n"
       << outcome.cases.size() << " cases: onehop faster in " << counts[0] << ", as fast in " << counts[1]
       << ", slower in " << counts[2] << " (more than " << kTolerance << " of NCCL's median); "
       << (wrong == 0 ? std::string("all results are right") : std::to_string(wrong) + " elements are WRONG")
       << "\n";
  text += line.str();
  if (outcome.standin)
    text += "This is the CPU stand-in: its times say nothing about GPUs, and do not decide the exit code.\n";
}

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

Json row_of(const Outcome& outcome, const CaseFigures& figures, size_t s) {
  const SideSpec& side = outcome.sides[s];
  const SideFigures& of = figures.sides[s];
  const Case& what = figures.what;
  const char* algo = std::getenv("ONEHOP_ALGO");
  const std::string pinned = algo == nullptr ? "auto" : algo;
  Json row = {{"side", side.onehop ? "onehop" : "nccl"},
              {"plan", !side.onehop       ? ""
                       : pinned == "auto" ? "auto"
                                          : "pinned"},
              {"method", !side.onehop ? side.method
                         : of.taken   ? pinned
                                      : ""},
              {"ranks", outcome.ranks},
              {"processes", outcome.processes},
              {"bytes", what.bytes},
              {"type", what.type->name},
              {"op", "sum"},
              {"mode", what.mode == Mode::kEager ? "eager" : "graph"},
              {"in_place", what.in_place},
              {"calls", what.calls},
              {"us", of.us},
              {"us_p99", of.us_p99},
              {"samples", of.samples},
              {"wrong", of.wrong}};
  if (what.mode == Mode::kEager) {
    row["host_us"] = of.host_us;
    row["host_us_p99"] = of.host_us_p99;
  } else {
    row["replayed_on"] = what.mode == Mode::kGraphDefault ? "default" : "other";
  }
  if (!what.note.empty()) row["note"] = what.note;
  if (side.onehop) {
    row["taken"] = of.taken;
    row["speed_up"] = figures.nccl().us / of.us;
    row["verdict"] = text_of(figures.verdict());
    row["looks"] = figures.looks;
  }
  return row;
}

}  // namespace

size_t best_nccl(const Outcome& outcome, const CaseFigures& figures) {
  size_t best = 0;
  for (size_t s = 2; s < outcome.sides.size(); ++s)
    if (is_rival(outcome.sides[s]) && figures.sides[s].us < figures.sides[best].us) best = s;
  return best;
}

std::string report(const Outcome& outcome) {
  std::string text = "onehop " + outcome.onehop + " beside NCCL " + version_text(outcome.nccl) + ": " +
                     std::to_string(outcome.ranks) + " ranks in " + std::to_string(outcome.processes) +
                     (outcome.processes == 1 ? " process on " : " processes on ") +
                     std::to_string(outcome.gpus) + "x " + outcome.gpu + " (" + outcome.links + ")\n";
  text += outcome.on ? "onehop is ON, up to " + human(outcome.max_bytes) + ", with " +
                           tool::size_text(outcome.staging_bytes) + " of staging on each rank\n"
                     : "onehop is OFF: " + outcome.reason + "\n";
  text += "First call: " + milliseconds(outcome.nccl_first_call_ms) +
          " ms with NCCL, which connects in it; " + milliseconds(outcome.first_call_ms) +
          " ms with onehop, " + milliseconds(outcome.set_up_ms) + " of them for its set-up\n";
  if (outcome.ranks_per_gpu > 1 && outcome.processes > 1 && !outcome.standin)
    text +=
        "Processes that share a GPU take turns on it unless they run under MPS: without it these are no "
        "measurements.\n";
  add_tables(outcome, text);
  for (const std::string& line : not_measured(outcome))
    text.append("\nNot measured: ").append(line).append("\n");
  add_suggestions(outcome, text);
  add_verdict(outcome, text);
  return text;
}

Json result_file(const Outcome& outcome, const Options& options) {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  const char* commit = std::getenv("ONEHOP_TEST_COMMIT");
  Json file = {
      {"title", options.title.empty() ? "onehop and stock NCCL by turns, onehop bench" : options.title},
      {"date", date},
      {"command", options.command},
      {"commit", !options.commit.empty() ? options.commit
                 : commit != nullptr     ? commit
                                         : ""},
      {"hardware", std::to_string(outcome.gpus) + "x " + outcome.gpu},
      {"gpus", outcome.gpus},
      {"links", outcome.links},
      {"driver", driver_version()},
      {"cuda", std::to_string(outcome.cuda / 1000) + "." + std::to_string(outcome.cuda % 1000 / 10)},
      {"nccl", version_text(outcome.nccl)},
      {"onehop", outcome.onehop},
      {"state", outcome.on ? "on" : "off: " + outcome.reason},
      {"set_up_ms", outcome.set_up_ms},
      {"staging_bytes", outcome.staging_bytes},
      {"first_call_ms", {{"nccl", outcome.nccl_first_call_ms}, {"onehop", outcome.first_call_ms}}},
      {"slower", std::count_if(outcome.cases.begin(), outcome.cases.end(),
                               [](const CaseFigures& c) { return c.verdict() == Verdict::kSlower; })},
      {"not_measured", not_measured(outcome)},
      {"rows", Json::array()}};
  for (const CaseFigures& figures : outcome.cases)
    for (size_t s = 0; s < outcome.sides.size(); ++s) file["rows"].push_back(row_of(outcome, figures, s));
  return file;
}

ExitCode exit_code(const Outcome& outcome) {
  bool slower = false;
  for (const CaseFigures& one : outcome.cases) {
    if (wrong_in(one) > 0) return kWrong;
    slower = slower || one.verdict() == Verdict::kSlower;
  }
  if (outcome.left > 0) return kNotMeasured;
  return slower && !outcome.standin ? kSlower : kGood;
}

}  // namespace onehop::bench
