// `onehop stats`: the statistics of running processes.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "plugin/statistics_text.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/live_statistics.hpp"

namespace onehop::tool {
namespace {

struct Options {
  std::vector<int> pids;
  bool all = false, json = false;
  double watch_s = 0;
};

void print_process(int pid, const StatisticsSnapshot& snapshot) {
  const Statistics sums = snapshot.sums();
  std::printf("process %d: onehop %s, %u libnccl taken over; %lu calls taken, %lu passed to NCCL\n", pid,
              snapshot.version.c_str(), snapshot.images, sums.taken(), sums.passed());
  for (const auto& comm : snapshot.communicators) {
    std::printf("  %s\n", communicator_text(comm).c_str());
    if (!comm.plan.empty()) std::printf("    %s\n", comm.plan.c_str());
  }
  if (snapshot.unlisted != 0) std::printf("  and %u communicators that are not listed\n", snapshot.unlisted);
  const auto others = [](const char* what, const Statistics& s) {
    if (s.taken() + s.passed() == 0) return;
    const std::string methods = methods_text(s), reasons = reasons_text(s);
    std::printf("  %s: %lu taken%s%s; %lu passed%s%s\n", what, s.taken(), methods.empty() ? "" : ": ",
                methods.c_str(), s.passed(), reasons.empty() ? "" : ": ", reasons.c_str());
  };
  others("communicators that were destroyed", snapshot.gone);
  others("no communicator", snapshot.elsewhere);
}

/// Whether every process could be read.
bool print_all(const Options& options, const std::vector<int>& pids) {
  bool complete = true;
  for (const int pid : pids) {
    const auto snapshot = live_statistics(pid);
    if (!snapshot) {
      std::fprintf(stderr, "onehop stats: process %d: %s\n", pid, snapshot.reason().c_str());
      complete = false;
    } else if (options.json) {
      // One line for each process.
      std::string text = statistics_json(*snapshot);
      std::erase(text, '\n');
      std::printf("%s\n", text.c_str());
    } else {
      print_process(pid, *snapshot);
    }
  }
  std::fflush(stdout);
  return complete;
}

void stats(const Options& options) {
  if (options.all == !options.pids.empty()) throw CLI::RequiredError("either PID or --all");
  bool printed = false;
  while (true) {
    const std::vector<int> pids = options.all ? processes_with_statistics() : options.pids;
    if (pids.empty() && !printed)
      std::fprintf(stderr, "onehop stats: no process that you may look into has onehop active\n");
    const bool complete = !pids.empty() && print_all(options, pids);
    // With --watch the end of the job is the end.
    if (!complete && options.watch_s > 0 && printed) return;
    if (!complete) throw Exit{kFound};
    if (options.watch_s <= 0) return;
    printed = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
  }
}

}  // namespace

void add_stats(CLI::App& app) {
  CLI::App* stats = app.add_subcommand("stats", "what onehop took and passed in a running process");
  auto options = std::make_shared<Options>();
  stats->add_option("PID", options->pids, "processes")->check(CLI::PositiveNumber);
  stats->add_flag("--all", options->all, "every process that has onehop active");
  stats->add_flag("--json", options->json, "one line of JSON for each process, as in ONEHOP_STATS_FILE");
  stats->add_option("--watch", options->watch_s, "again every so many seconds, until the process ends")
      ->check(CLI::PositiveNumber);
  stats->footer("Exit codes: 0; 1 if a process could not be read, or with --all there is none; 2 usage.");
  stats->callback([options] { tool::stats(*options); });
}

}  // namespace onehop::tool
