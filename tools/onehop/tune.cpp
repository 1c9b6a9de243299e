// `onehop tune`: measures every method and geometry against stock NCCL on this machine, and writes a plan
// file.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/onehop/commands.hpp"
#include "tools/onehop/file_lock.hpp"
#include "tools/onehop/nccl_settings.hpp"
#include "tools/onehop/tune_files.hpp"
#include "tools/onehop/tune_progress.hpp"
#include "tools/onehop/tune_rivals.hpp"
#include "tools/onehop/tune_timing.hpp"
#include "tools/onehop/tune_workers.hpp"

namespace onehop::tune {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int ranks = 0;
  bool one_process = false, share_gpus = false, verbose = false, no_rivals = false;
  std::string out = "onehop-plan.json", state, plugin, staging = "auto", effort = "normal", islands = "auto";
  std::vector<uint64_t> sizes;
  std::vector<std::string> more_rivals;
  double margin = 0.95;
  int deadline_s = 20;
};

std::vector<uint64_t> default_sizes() {
  std::vector<uint64_t> sizes = {256};
  for (uint64_t bytes = 1 << 10; bytes <= 512 << 10; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

/// A file, first of those that exist.
Result<std::string> first_of(const std::vector<std::filesystem::path>& paths, const char* what) {
  for (const auto& path : paths)
    if (std::filesystem::exists(path)) return std::filesystem::canonical(path).string();
  return Error{std::string(what) + " is not where this program is"};
}

class Tune {
 public:
  explicit Tune(Options options) : options_(std::move(options)) {}

  Status run() {
    if (options_.state.empty()) options_.state = options_.out + ".state";
    if (options_.sizes.empty()) options_.sizes = default_sizes();
    std::sort(options_.sizes.begin(), options_.sizes.end());
    if (options_.sizes.size() > Plan{}.ranges.size() || options_.sizes.front() < 2 ||
        options_.sizes.back() > kLargestPlannedCall ||
        std::adjacent_find(options_.sizes.begin(), options_.sizes.end()) != options_.sizes.end())
      return Error{"--sizes: up to 16 different numbers of bytes from 2 to 8388608"};
    std::vector<uint8_t> islands;
    if (!parse_islands(options_.islands, islands) ||
        (!islands.empty() && islands.size() != static_cast<size_t>(options_.ranks)))
      return Error{"--islands: the ranks of each, as in 0-3/4-7, each rank once"};
    for (const std::string& text : options_.more_rivals)
      if (const auto settings = tool::parse_nccl_settings(text); !settings) return settings.error();
    if (options_.out == options_.state) return Error{"--out and --state are the same file"};
    Status status;
    for (const std::string& path : {options_.out, options_.state})
      if (status) status = lock(path);
    if (status) status = can_take_plan(options_.out);
    if (status) status = make_workers();
    if (status) status = meet();
    if (!status) return status;
    const Result<State> opened = State::open(options_.state, machine_, options_text());
    if (!opened) return opened.error();
    state_ = *opened;
    if (!state_.results().empty())
      progress_.say("going on after " + std::to_string(state_.results().size()) + " steps (" +
                    options_.state + ")");

    const std::vector<Step> first = first_round(choices_);
    const size_t expected = first.size() + 4 * choices_.sizes.size();
    status = measure(first, 0, expected);
    if (!status) return status;
    const std::vector<Step> second = second_round(choices_, state_.results());
    status = measure(second, first.size(), first.size() + second.size());
    if (status) status = write();
    if (status) suggest();
    return status;
  }

 private:
  /// Two at a time would lose each other's results, and disturb each other's times.
  Status lock(const std::string& path) {
    Result<FileLock> taken = FileLock::take(path);
    if (!taken) return taken.error();
    if (!*taken)
      return Error{
          "another onehop tune is at work on " + path +
          "; wait for it, or name others by --out and --state. One run measures all ranks: it is not "
          "started once for each"};
    locks_.push_back(std::move(*taken));
    return {};
  }

  Status make_workers() {
    const std::filesystem::path here = std::filesystem::canonical("/proc/self/exe").parent_path();
    const Result<std::string> program =
        first_of({here / "onehop-tune-worker", here / "onehop" / "onehop-tune-worker"}, "onehop-tune-worker");
    if (!program) return program.error();
    const char* name = "libnccl-net-onehop.so";
    const Result<std::string> plugin =
        options_.plugin.empty()
            ? first_of({here / name, here / "../plugin" / name, here / "../../plugin" / name,
                        here / "../lib" / name, here / "../lib/x86_64-linux-gnu" / name},
                       name)
            : first_of({options_.plugin}, options_.plugin.c_str());
    if (!plugin) return Error{plugin.reason() + "; name it by --plugin"};

    WorkerSetup& stock = setup_;
    stock.program = *program;
    stock.ranks = options_.ranks;
    stock.one_process = options_.one_process;
    stock.quiet = !options_.verbose;
    stock.deadline_s = options_.deadline_s;
    // Nothing of onehop, whatever this program was started with.
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string entry = *variable, variable_name = entry.substr(0, entry.find('='));
      const bool loads = variable_name == "LD_PRELOAD" || variable_name.ends_with("_PLUGIN");
      if ((variable_name.starts_with("ONEHOP_") && !variable_name.starts_with("ONEHOP_STANDIN_") &&
           !variable_name.starts_with("ONEHOP_TEST_")) ||
          (loads && entry.find("onehop") != std::string::npos))
        stock.environment[variable_name] = "";
    }
    if (options_.share_gpus) {
      stock.environment["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
      stock.environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "32";
    }
    WorkerSetup with = stock;
    with.plugin = *plugin;
    auto& environment = with.environment;
    environment["LD_PRELOAD"] = *plugin;
    environment["ONEHOP_PLAN"] = empty_plan_file();
    environment["ONEHOP_MEASURE"] = "off";
    environment["ONEHOP_TIMEOUT_S"] = std::to_string(std::max(options_.deadline_s / 2, 1));
    environment["ONEHOP_MAX_BYTES"] = std::to_string(options_.sizes.back());
    environment["ONEHOP_STAGING"] = options_.staging;
    environment["ONEHOP_ISLANDS"] = options_.islands == "auto" ? found_islands(with) : options_.islands;
    stock_ = std::make_unique<Workers>(stock);
    onehop_ = std::make_unique<Workers>(with);
    return {};
  }

  /// As a communicator finds them that is measured when it is set up.
  std::string found_islands(WorkerSetup setup) const {
    constexpr int kFewest = 4, kMost = static_cast<int>(kMaxHopRanks);
    if (options_.ranks < kFewest || options_.ranks > kMost || options_.share_gpus) return "auto";
    setup.environment["ONEHOP_MEASURE"] = "quick";
    setup.environment["ONEHOP_MAX_BYTES"] = "";  // with too little memory no links are measured
    Workers workers(setup);
    const Result<std::string> started = workers.start();
    const auto json = started ? nlohmann::json::parse(*started, nullptr, false) : nlohmann::json();
    return json.is_object() ? json.value("islands", "auto") : "auto";
  }

  /// Whoever has a plan file, even one without plans, can be told plans later. It has no name, and the
  /// workers inherit it.
  static std::string empty_plan_file() {
    const int file = memfd_create("onehop-plan", 0);
    const std::string text = "{\"format\": 1, \"plans\": []}";
    if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return "";
    return "/proc/self/fd/" + std::to_string(file);
  }

  /// Starts both sides, and learns what machine this is.
  Status meet() {
    const Result<std::string> stock = stock_->start();
    if (!stock) return Error{"stock NCCL does not run: " + stock.reason()};
    const Result<std::string> with = onehop_->start();
    if (!with) return Error{"onehop does not run: " + with.reason()};
    const auto json = nlohmann::json::parse(*with, nullptr, false);
    if (!json.is_object()) return Error{"onehop was not loaded into the processes that measure"};
    for (size_t f = 0; f < kFacts; ++f) machine_.facts[f] = json["machine"][kFactNames[f]];
    choices_.sizes = options_.sizes;
    choices_.margin = options_.margin;
    choices_.ranks = static_cast<uint32_t>(options_.ranks);
    choices_.most_blocks = json["blocks"];
    (void)parse_islands(json["islands"].get<std::string>(), choices_.islands);
    for (const std::string method : json["methods"])
      for (uint32_t m = 0; m < kMethods; ++m)
        if (method == name_of(static_cast<Method>(m))) choices_.methods.push_back(static_cast<Method>(m));
    on_standin_ = machine_[Fact::kGpus].find("stand-in") != std::string::npos;
    progress_.say("tuning " + std::to_string(options_.ranks) + " ranks on " + machine_[Fact::kGpus] +
                  ", staging in " + machine_[Fact::kStaging]);
    if (on_standin_) progress_.say("this is the CPU stand-in: its times mean nothing");
    return {};
  }

  std::string options_text() const {
    std::string text =
        "effort " + options_.effort + ", margin " + std::to_string(options_.margin) + ", sizes";
    for (const uint64_t bytes : options_.sizes) text += " " + std::to_string(bytes);
    if (std::count(choices_.methods.begin(), choices_.methods.end(), Method::kIslands) > 0)
      text += ", islands " + show_islands(choices_.islands);
    return text;
  }

  Status measure(const std::vector<Step>& steps, size_t before, size_t all) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (state_.has(steps[i])) continue;
      progress_.show(before + i, all, describe(steps[i]));
      const Result<Measured> measured = measure(steps[i]);
      if (!measured) return measured.error();
      if (!measured->counts()) progress_.say("dropped: " + describe(steps[i]) + ": " + measured->dropped);
      if (Status kept = state_.add(*measured); !kept) return kept;
    }
    return {};
  }

  /// An Error only where nothing can be measured any more.
  Result<Measured> measure(const Step& step) {
    if (!onehop_->running())
      if (const Result<std::string> again = onehop_->start(); !again)
        return Error{"onehop does not run any more: " + again.reason()};
    const auto dropped = [&](const std::string& why) { return Measured{{0, 0, why}, step}; };
    const auto planned = onehop_->ask("plan " + plan_with(step));
    if (!planned) return dropped(planned.reason());
    for (const std::string& answer : *planned)
      if (answer != "ok") return dropped(answer.substr(3));

    const Efforts efforts = efforts_of(options_.effort);
    const Result<Times> times =
        time_by_turns(*stock_, *onehop_, true, step.bytes, step.round == 1 ? efforts.first : efforts.second);
    if (!times) return times.error();
    return Measured{*times, step};
  }

  /// A plan file in one line, with this step for every size.
  std::string plan_with(const Step& step) const {
    nlohmann::json range = {{"up_to", kLargestPlannedCall},
                            {"method", name_of(step.method)},
                            {"measured_at", 1},
                            {"us", 1},
                            {"nccl_us", 1}};
    if (step.most.blocks != 0) range["blocks"] = step.most.blocks, range["workers"] = step.most.workers;
    const nlohmann::json plan = {{"machine", nlohmann::json::parse(to_json(machine_))},
                                 {"measured", ""},
                                 {"islands", show_islands(choices_.islands)},
                                 {"ranges", {range}}};
    return nlohmann::json{{"format", 1}, {"plans", {plan}}}.dump();
  }

  Status write() {
    FilePlan& plan = plan_ = best_plan(choices_, state_.results());
    plan.machine = machine_;
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
    plan.measured = std::string(date) + ", onehop tune, bfloat16 sums in graphs, " + options_text() +
                    (on_standin_ ? "; on the CPU stand-in, where times mean nothing" : "");
    if (Status written = put_plan(options_.out, plan); !written) return written;
    progress_.say("");
    uint64_t above = 0;
    for (const FilePlan::Range& range : plan.ranges) {
      char times[64];
      if (range.method)
        std::snprintf(times, sizeof(times), "%9.2f us, NCCL %9.2f", range.us, range.nccl_us);
      else
        std::snprintf(times, sizeof(times), "%9.2f us", range.nccl_us);
      std::string geometry;
      if (range.most.blocks != 0)
        geometry =
            " (" + std::to_string(range.most.blocks) + " x " + std::to_string(range.most.workers) + ")";
      std::printf("%8llu to %8llu bytes  %-28s %s\n", static_cast<unsigned long long>(above) + 1,
                  static_cast<unsigned long long>(range.up_to),
                  ((range.method ? name_of(*range.method) : "NCCL") + geometry).c_str(), times);
      above = range.up_to;
    }
    std::printf("written to %s; use it with ONEHOP_PLAN=%s\n", options_.out.c_str(),
                std::filesystem::absolute(options_.out).c_str());
    std::fflush(stdout);  // what comes next takes a while
    return {};
  }

  /// Settings of NCCL for the calls that it keeps. The plan is there; what goes wrong here costs a line.
  void suggest() {
    std::vector<std::string> settings =
        options_.no_rivals ? std::vector<std::string>{} : tool::usual_rivals();
    settings.insert(settings.end(), options_.more_rivals.begin(), options_.more_rivals.end());
    if (settings.empty()) return;
    onehop_->stop();  // the processes of one side are enough beside stock NCCL's
    const Efforts efforts = efforts_of(options_.effort);
    const auto first = first_rivals(settings, sizes_left_to_nccl(plan_, options_.sizes, options_.share_gpus));
    Status status = measure(first, efforts.first);
    const std::vector<RivalStep> second = second_rivals(first, state_.rivals());
    if (status) status = measure(second, efforts.second);
    progress_.say("");
    if (!status) return progress_.say("settings of NCCL were not all tried: " + status.reason());
    if (!first.empty()) std::printf("%s", suggestions(second, state_.rivals()).c_str());
  }

  Status measure(const std::vector<RivalStep>& steps, const Effort& effort) {
    progress_.begin_again();
    std::unique_ptr<Workers> rival;
    std::string of_rival, no_start;
    for (size_t i = 0; i < steps.size(); ++i) {
      const RivalStep& step = steps[i];
      if (state_.has(step)) continue;
      progress_.show(i, steps.size(), describe(step));
      if (step.settings != of_rival || (!rival->running() && no_start.empty())) {
        WorkerSetup setup = setup_;
        const auto settings = tool::parse_nccl_settings(step.settings);
        for (const auto& [name, value] : *settings) setup.environment[name] = value;
        of_rival = step.settings;
        rival = std::make_unique<Workers>(setup);
        const Result<std::string> started = rival->start();
        no_start = started ? "" : started.reason();
      }
      Effort here = effort;
      // Large calls need no more time to be timed as well.
      here.calls = std::max<int>(2, static_cast<int>(static_cast<uint64_t>(effort.calls) * (64 << 10) /
                                                     std::max<uint64_t>(step.bytes, 64 << 10)));
      const Result<Times> times = no_start.empty() ? time_by_turns(*stock_, *rival, false, step.bytes, here)
                                                   : Result<Times>(Times{0, 0, no_start});
      if (!times) return times.error();
      if (!times->counts()) progress_.say("dropped: " + describe(step) + ": " + times->dropped);
      if (Status kept = state_.add(RivalMeasured{*times, step}); !kept) return kept;
    }
    return {};
  }

  Options options_;
  std::vector<FileLock> locks_;
  WorkerSetup setup_;  ///< of stock NCCL
  std::unique_ptr<Workers> stock_, onehop_;
  Machine machine_;
  Choices choices_;
  State state_;
  FilePlan plan_;
  bool on_standin_ = false;
  ProgressBar progress_;
};

}  // namespace
}  // namespace onehop::tune

void onehop::tool::add_tune(CLI::App& app) {
  auto options = std::make_shared<onehop::tune::Options>();
  CLI::App* tune = app.add_subcommand("tune", "measure this machine long and well, and write a plan file");
  tune->add_option("--ranks", options->ranks, "ranks of the communicators that the plan is for")
      ->required()
      ->check(CLI::Range(2, 16));
  tune->add_flag("--one-process", options->one_process, "all ranks in one process, as in jobs of that kind");
  tune->add_flag("--share-gpus", options->share_gpus, "more ranks than GPUs (NCCL 2.30.7 or newer)");
  tune->add_option("--out", options->out, "the plan file; other plans in it are kept")->capture_default_str();
  tune->add_option("--state", options->state,
                   "what was measured so far; default: the plan file's name and .state");
  tune->add_option("--staging", options->staging, "as ONEHOP_STAGING")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "p2p", "host"}));
  tune->add_option("--islands", options->islands,
                   "the ranks of each, as in 0-3/4-7, for the method islands; auto: as the links have them")
      ->capture_default_str();
  tune->add_option("--sizes", options->sizes, "bytes of the calls to measure")->delimiter(',');
  tune->add_option("--effort", options->effort, "how long to look")
      ->capture_default_str()
      ->check(CLI::IsMember({"least", "normal", "long"}));
  tune->add_flag("--no-rivals", options->no_rivals,
                 "try no settings of NCCL for the calls that it keeps, but those of --rival");
  tune->add_option("--rival", options->more_rivals,
                   "try these settings of NCCL too, as in \"NCCL_ALGO=Tree NCCL_PROTO=LL\"; may be repeated");
  tune->add_option("--margin", options->margin, "a method must take at most this part of NCCL's time")
      ->capture_default_str();
  tune->add_option("--deadline", options->deadline_s, "seconds for one answer of the processes that measure")
      ->capture_default_str()
      ->check(CLI::Range(1, 600));
  tune->add_option("--plugin", options->plugin,
                   "libnccl-net-onehop.so; default: the one that belongs to this program");
  tune->add_flag("--verbose", options->verbose,
                 "show what the processes that measure write to standard error");
  tune->callback([options] {
    const onehop::Status status = onehop::tune::Tune(*options).run();
    if (status) return;
    std::fprintf(stderr, "\nonehop tune: %s\n", status.reason().c_str());
    throw CLI::RuntimeError(1);
  });
}
