#include "tools/onehop/bench/bench.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "tools/onehop/bench/report.hpp"
#include "tools/onehop/bench/worker.hpp"

namespace onehop::bench {
namespace {

[[noreturn]] void leave(ExitCode code, const std::string& why = "") {
  if (!why.empty()) std::fprintf(stderr, "onehop bench: %s\n", why.c_str());
  throw CLI::RuntimeError(code);
}

/// As it was typed, for the result file.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command, word;
  while (std::getline(file, word, '\0')) command += (command.empty() ? "" : " ") + word;
  return command;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--ranks", options.ranks,
                 "ranks (default: one for each GPU, at least 2); more than GPUs need NCCL 2.30.7")
      ->check(CLI::Range(2, 16));
  CLI::Option* processes = app.add_flag_callback(
      "--processes", [&] { options.drive = Drive::kProcesses; },
      "a process for each rank (default where each has a GPU)");
  CLI::Option* threads = app.add_flag_callback(
      "--threads", [&] { options.drive = Drive::kThreads; },
      "one process, a thread for each rank (default where they share a GPU)");
  CLI::Option* group = app.add_flag_callback(
      "--group", [&] { options.drive = Drive::kGroup; }, "one process, one thread, every call in a group");
  processes->excludes(threads, group);
  threads->excludes(group);

  CLI::Option* sizes =
      app.add_option("--sizes", options.sizes, "bytes, as in 64,4K,1M (default: 8 B to 64 MiB and 42 KiB)");
  app.add_flag("--decode", options.decode,
               "the all-reduces of well-known models in decoding, instead of sizes")
      ->excludes(sizes);
  app.add_option("--models", options.models, "with --decode, only models with this in their name")
      ->needs("--decode");
  app.add_option("--types", options.types, "element types")->delimiter(',')->capture_default_str();
  app.add_option("--modes", options.modes, "graph, graph-default, eager (default: all; --decode: the graphs)")
      ->delimiter(',');
  app.add_option("--in-place", options.places, "in, out or both")
      ->check(CLI::IsMember({"in", "out", "both"}))
      ->capture_default_str();
  app.add_option("--calls", options.calls, "calls per graph")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "turns of each side per case")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--replays", options.replays, "samples per turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "few sizes, few repetitions");

  app.add_flag("--rivals", options.rivals, "also NCCL with its better settings");
  app.add_option("--rival", options.more_rivals,
                 "also NCCL with these settings, as in \"NCCL_PROTO=LL NCCL_ALGO=Tree\"; may be repeated")
      ->take_all();
  app.add_flag("--control", options.control,
               "also stock NCCL a second time: how much two equal sides differ");

  app.add_option(
      "--plugin", options.plugin,
      "libnccl-net-onehop.so (default: NCCL_NET_PLUGIN if that names onehop, else beside this command)");
  app.add_option("--nccl", options.nccl, "libnccl.so.2 (default: as the loader finds it)");
  app.add_option("--cudart", options.cudart, "libcudart.so");
  app.add_option("--json", options.json, "write the results to this file, in the form of docs/results");
  app.add_option("--title", options.title, "for the result file");
  app.add_option("--links", options.links, "for the result file: how the GPUs are linked");
  app.add_option("--commit", options.commit, "for the result file");
  app.add_option("--deadline", options.deadline_s,
                 "seconds that a single step may take; then everything is ended")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "show what NCCL and onehop write");
}

void bench(Options& options, bool repetitions_given) {
  if (options.quick && !repetitions_given) options.repetitions = 6;
  options.command = command_line();
  if (const auto cases = cases_of(options); !cases) leave(kUsage, cases.reason());
  if (const auto sides = sides_of(options); !sides) leave(kUsage, sides.reason());
  const Result<Outcome> outcome = run(options);
  if (!outcome) leave(kNotMeasured, outcome.reason());
  std::fputs(report(*outcome).c_str(), stdout);
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << result_file(*outcome, options).dump(1) << "\n";
    if (!file.flush()) leave(kNotMeasured, "cannot write " + options.json);
  }
  leave(exit_code(*outcome), outcome->why_left);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "stock NCCL and onehop side by side (docs/bench.md)");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->callback([command, options] { bench(*options, command->count("--repetitions") > 0); });

  // What bench starts; an empty group keeps it out of the help.
  CLI::App* process = app.add_subcommand("bench-process", "a process of bench")->group("");
  const auto channel = std::make_shared<int>(-1);
  process->add_option("channel", *channel)->required();
  process->callback([channel] { leave(static_cast<ExitCode>(serve(*channel))); });
}

}  // namespace onehop::bench
