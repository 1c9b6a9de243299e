#include "tools/onehop/bench/run.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/onehop/bench/interrupt.hpp"
#include "tools/onehop/bench/side.hpp"
#include "tools/onehop/bench/table.hpp"
#include "tools/onehop/progress_line.hpp"

namespace onehop::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstWithSharedGpus = 23007;
constexpr size_t kLarge = size_t{4} << 20;

/// The plugin: named, or what the environment says, or where a build or an installation has it.
Result<std::string> find_plugin(const std::string& named) {
  const char* environment = std::getenv("NCCL_NET_PLUGIN");
  if (named.empty() && environment != nullptr && std::strstr(environment, "onehop") != nullptr)
    return std::string(environment);
  if (!named.empty()) {
    std::error_code error;
    if (fs::exists(named, error)) return fs::absolute(named).string();
    return Error{"no such plugin: " + named};
  }
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"../../plugin", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "."}) {
    const fs::path path = folder / place / "libnccl-net-onehop.so";
    if (fs::exists(path, error)) return fs::weakly_canonical(path, error).string();
  }
  return Error{"libnccl-net-onehop.so was not found beside this command: name it with --plugin"};
}

/// The most channels that NCCL may have on any side; 0: any number.
int most_channels(const std::vector<SideSpec>& sides) {
  int most = 0;
  for (const SideSpec& side : sides) {
    const char* text = std::getenv("NCCL_MAX_NCHANNELS");
    for (const auto& [name, value] : side.settings)
      if (name == "NCCL_MAX_NCHANNELS") text = value.c_str();
    const int channels = text == nullptr ? 0 : std::atoi(text);
    if (channels <= 0) return 0;
    most = std::max(most, channels);
  }
  return most;
}

class Run {
 public:
  Run(const Options& options, std::vector<Case> cases) : options_(options), cases_(std::move(cases)) {}
  ~Run() { progress_.clear(); }

  Result<Outcome> all() {
    Status done = look_around();
    if (done) done = start();
    note_interrupts();
    for (size_t i = 0; done && i < cases_.size(); ++i) {
      say(std::to_string(i + 1) + " of " + std::to_string(cases_.size()) + ": " + title(cases_[i]));
      Result<CaseFigures> figures = measure(cases_[i]);
      if (figures)
        outcome_.cases.push_back(std::move(*figures));
      else
        done = figures.error();
    }
    if (!done && outcome_.cases.empty()) return done.error();
    if (done) {
      if (Status ended = end(); !ended) return ended.error();
      done = measure_slower_anew();
    }
    if (!done) {
      outcome_.left = cases_.size() - outcome_.cases.size();
      outcome_.why_left = done.reason();
    }
    return std::move(outcome_);
  }

 private:
  Status end() {
    for (const auto& side : sides_) side->tell({{"do", "goodbye"}});
    for (const auto& side : sides_)
      if (auto answers = side->collect("ending", options_.deadline_s); !answers) return answers.error();
    sides_.clear();
    return {};
  }

  /// What seems slower, once more with other communicators. Two communicators of stock NCCL differ: of those
  /// of two ranks on one H200 some take 1.3 us longer for each call as long as they live (docs/bench.md).
  Status measure_slower_anew() {
    std::vector<CaseFigures*> slower;
    for (CaseFigures& figures : outcome_.cases)
      if (figures.verdict() == Verdict::kSlower) slower.push_back(&figures);
    if (slower.empty()) return {};
    if (Status started = start(); !started) return started;
    for (size_t i = 0; i < slower.size(); ++i) {
      say("anew, " + std::to_string(i + 1) + " of " + std::to_string(slower.size()) + ": " +
          title(slower[i]->what));
      Result<CaseFigures> figures = measure(slower[i]->what);
      if (!figures) return figures.error();
      slower[i]->replace_by(std::move(*figures));
    }
    return end();
  }

  void say(const std::string& text) { progress_.show(text, "onehop bench: " + text); }

  static std::string title(const Case& what) {
    return std::string(name_of(what.mode)) + ", " + human(what.bytes) + " of " + what.type->name +
           (what.in_place ? ", in place" : "");
  }

  Json load_command() const { return {{"do", "load"}, {"nccl", options_.nccl}, {"cudart", options_.cudart}}; }

  /// Asks a process of its own what there is, for this one must stay without CUDA.
  Status look_around() {
    say("looking for NCCL and GPUs");
    layout_ = {1, 1, 1, false, 0, "", options_.verbose};
    Side probe({"looking around", false, "", {}}, layout_);
    if (Status started = probe.start(); !started) return started;
    const Result<std::vector<Json>> answers =
        probe.ask(load_command(), "loading the libraries", options_.deadline_s);
    if (!answers) return answers.error();
    const Json& found = answers->front();
    outcome_.gpus = found.at("gpus");
    outcome_.gpu = found.at("gpu");
    outcome_.cuda = found.at("cuda");
    outcome_.nccl = found.at("nccl");
    outcome_.standin = found.at("standin");
    return lay_out(found.at("peers"));
  }

  Status lay_out(bool peers) {
    const int ranks = options_.ranks > 0 ? options_.ranks : std::max(2, outcome_.gpus);
    const int gpus = std::min(ranks, outcome_.gpus);
    const bool shared = ranks > gpus;
    if (shared && !outcome_.standin && outcome_.nccl < kFirstWithSharedGpus)
      return Error{std::to_string(ranks) + " ranks on " + std::to_string(gpus) +
                   " GPUs need NCCL 2.30.7 or newer (--nccl names another libnccl.so.2)"};
    Drive drive = options_.drive;
    if (drive == Drive::kAuto) drive = shared ? Drive::kThreads : Drive::kProcesses;
    const Result<std::string> plugin = find_plugin(options_.plugin);
    if (!plugin) return plugin.error();
    Result<std::vector<SideSpec>> specs = sides_of(options_);
    if (!specs) return specs.error();
    outcome_.sides = *specs;
    const bool one_process = drive != Drive::kProcesses;
    outcome_.ranks = ranks;
    outcome_.gpus = gpus;
    layout_ = {ranks, gpus, one_process ? ranks : 1, drive == Drive::kGroup, 0, *plugin, options_.verbose};
    outcome_.processes = layout_.processes();
    outcome_.ranks_per_gpu = layout_.ranks_per_gpu();
    outcome_.skipped = take_out(cases_, layout_.ranks_per_gpu(), one_process, most_channels(outcome_.sides));
    if (cases_.empty()) return Error{"nothing of this can be measured: " + outcome_.skipped.front().why};
    for (const Case& one : cases_)
      layout_.memory = std::max(layout_.memory, stride_of(one.bytes) * one.calls);
    layout_.memory = std::max<size_t>(layout_.memory, 4096);
    const char* no_peers = std::getenv("NCCL_P2P_DISABLE");
    const bool host = no_peers != nullptr && std::strcmp(no_peers, "0") != 0;
    outcome_.links = !options_.links.empty() ? options_.links
                     : outcome_.standin      ? "CPU stand-in"
                     : shared && gpus == 1   ? "same GPU"
                     : host                  ? "host memory (NCCL_P2P_DISABLE)"
                     : peers                 ? "peer-to-peer"
                                             : "no peer-to-peer";
    return {};
  }

  /// Stock sides first, all at the same time; onehop's last and alone, for it measures while it is set up.
  Status start() {
    for (const SideSpec& spec : outcome_.sides) sides_.push_back(std::make_unique<Side>(spec, layout_));
    for (const bool onehop : {false, true}) {
      say(onehop ? "starting onehop" : "starting NCCL");
      std::vector<Side*> now;
      for (const auto& side : sides_)
        if (side->spec().onehop == onehop) now.push_back(side.get());
      if (Status opened = open(now); !opened) return opened;
    }
    return {};
  }

  Status open(const std::vector<Side*>& sides) {
    for (Side* side : sides) {
      if (Status started = side->start(); !started) return started;
      side->tell(load_command());
    }
    for (Side* side : sides)
      if (auto answers = side->collect("loading the libraries", options_.deadline_s); !answers)
        return answers.error();
    for (Side* side : sides) {
      const Result<std::vector<Json>> id = side->id(options_.deadline_s);
      if (!id) return id.error();
      side->tell_open(id->front().at("id"));
    }
    for (Side* side : sides) {
      const Result<std::vector<Json>> opened = side->collect("making communicators", options_.deadline_s);
      if (!opened) return opened.error();
      if (side->spec().onehop) outcome_.onehop = opened->front().at("version");
    }
    for (Side* side : sides)
      if (Status done = set_up(*side); !done) return done;
    return {};
  }

  /// One side after the other: the first call is timed.
  Status set_up(Side& side) {
    const Result<std::vector<Json>> answers =
        side.ask({{"do", "set up"}}, "the first call", options_.deadline_s);
    if (!answers) return answers.error();
    const auto most = [&](const char* name) {
      double most = 0;
      for (const Json& answer : *answers) most = std::max(most, answer.at(name).get<double>());
      return most;
    };
    if (&side == sides_.front().get()) outcome_.nccl_first_call_ms = most("first_call_ms");
    if (!side.spec().onehop) return {};
    outcome_.first_call_ms = most("first_call_ms");
    outcome_.on = answers->front().at("on");
    outcome_.reason = answers->front().at("reason");
    outcome_.max_bytes = answers->front().at("max_bytes");
    outcome_.set_up_ms = most("set_up_ms");
    outcome_.staging_bytes = answers->front().at("staging_bytes");
    return {};
  }

  Result<CaseFigures> measure(const Case& what) {
    CaseFigures figures{what, std::vector<SideFigures>(sides_.size()), 1};
    const Json command = {{"do", "prepare"},         {"mode", static_cast<int>(what.mode)},
                          {"type", what.type->name}, {"in_place", what.in_place},
                          {"bytes", what.bytes},     {"calls", what.calls}};
    for (size_t s = 0; s < sides_.size(); ++s) {
      const Result<std::vector<Json>> answers = sides_[s]->ask(command, title(what), options_.deadline_s);
      if (!answers) return answers.error();
      for (const Json& answer : *answers) figures.sides[s].wrong += answer.at("wrong").get<size_t>();
      figures.sides[s].taken = answers->front().at("taken");
    }
    Status done = look(figures);
    // Two medians of the same thing differ by more than the tolerance now and then. The second look is not
    // mixed with the first: it stands for itself.
    if (done && figures.verdict() == Verdict::kSlower) {
      figures.looks = 2;
      done = look(figures);
    }
    if (!done) return done.error();
    for (size_t s = 0; s < sides_.size(); ++s) {
      const Result<std::vector<Json>> answers =
          sides_[s]->ask({{"do", "finish"}}, title(what), options_.deadline_s);
      if (!answers) return answers.error();
      for (const Json& answer : *answers) figures.sides[s].wrong += answer.at("wrong").get<size_t>();
    }
    return figures;
  }

  /// All sides in every repetition, each time another one first, so that a drift of the machine meets all.
  Status look(CaseFigures& figures) {
    const bool large = figures.what.bytes >= kLarge;
    const size_t repetitions = std::max<size_t>(large ? options_.repetitions / 2 : options_.repetitions, 1);
    const Json command = {{"do", "measure"},
                          {"samples", large ? std::min<size_t>(options_.replays, 2) : options_.replays}};
    std::vector<std::vector<double>> us(sides_.size()), host_us(sides_.size());
    for (size_t repetition = 0; repetition < repetitions; ++repetition) {
      if (interrupted()) return Error{"interrupted"};
      for (size_t i = 0; i < sides_.size(); ++i) {
        const size_t s = (i + repetition) % sides_.size();
        const Result<std::vector<Json>> answers =
            sides_[s]->ask(command, title(figures.what), options_.deadline_s);
        if (!answers) return answers.error();
        append(us[s], shortest(of_ranks(*answers, "us")));
        append(host_us[s], longest(of_ranks(*answers, "host_us")));
      }
    }
    for (size_t s = 0; s < sides_.size(); ++s) {
      SideFigures& side = figures.sides[s];
      side.samples = us[s].size();
      side.us = median(us[s]);
      side.us_p99 = percentile(us[s], 0.99);
      if (host_us[s].empty()) continue;
      side.host_us = median(host_us[s]);
      side.host_us_p99 = percentile(host_us[s], 0.99);
    }
    return {};
  }

  static std::vector<std::vector<double>> of_ranks(const std::vector<Json>& answers, const char* name) {
    std::vector<std::vector<double>> all;
    for (const Json& answer : answers)
      for (const Json& samples : answer.at(name)) all.push_back(samples.get<std::vector<double>>());
    return all;
  }

  static void append(std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  const Options& options_;
  std::vector<Case> cases_;
  Layout layout_;
  std::vector<std::unique_ptr<Side>> sides_;
  Outcome outcome_;
  tool::ProgressLine progress_{false};
};

}  // namespace

Result<Outcome> run(const Options& options) {
  Result<std::vector<Case>> cases = cases_of(options);
  if (!cases) return cases.error();
  return Run(options, std::move(*cases)).all();
}

}  // namespace onehop::bench
