// What happens to a job with onehop when ranks die, come late, come and go, and when graphs, streams and
// threads mix: an NCCL program whose cases each run in processes of their own.
//
//   NCCL_NET_PLUGIN=libnccl-net-onehop.so nccl-life OUT.json LOGS [all|memory|others|SUBSTRING] [SECONDS
//   [SCALE]]
//
// With the real NCCL (2.30 or newer where ranks share a GPU) in LD_LIBRARY_PATH. "memory" are the jobs that
// look at the GPU's free memory, alone; "others" the rest, several at once. SECONDS: nothing is started that
// could last longer (default 500). SCALE: part of the counts (default 1). Without MPS: a killed client would
// take its server along.
#include <sys/stat.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <thread>

#include "test/gpu/life/rank.hpp"
#include "test/gpu/life/runner.hpp"
#include "test/gpu/results.hpp"

namespace onehop::test {
namespace {

using Environment = std::map<std::string, std::string>;

/// Jobs that follow each other; lanes run side by side.
using Lane = std::vector<Job>;

std::string scaled(double count, double scale) {
  return std::to_string(std::max(1L, static_cast<long>(count * scale)));
}

Lane memory_lane(double scale) {
  const std::string cycles = scaled(200, std::max(scale, 0.2));
  return {
      {.name = "cycles-2",
       .case_name = "cycles",
       .argument = cycles + ",150",
       .threads = 2,
       .deadline_s = 220},
      {.name = "cycles-4",
       .case_name = "cycles",
       .argument = cycles + ",150",
       .threads = 4,
       .deadline_s = 220},
      {.name = "cycles-4-stock",
       .case_name = "cycles",
       .argument = scaled(60, std::max(scale, 0.7)) + ",15",
       .threads = 4,
       .deadline_s = 60,
       .stock = true,
       .report = true},
      {.name = "many",
       .case_name = "many",
       .argument = scaled(50, std::max(scale, 0.5)),
       .threads = 2,
       .deadline_s = 100},
  };
}

Lane ends_lane() {
#ifdef ONEHOP_ON_STANDIN
  const Environment soon = {{"ONEHOP_TIMEOUT_S", "3"}}, &later = soon;
#else
  const Environment soon = {{"ONEHOP_TIMEOUT_S", "5"}}, later = {{"ONEHOP_TIMEOUT_S", "15"}};
#endif
  Lane lane;
  for (const int processes : {2, 4}) {
    const std::string n = "-" + std::to_string(processes);
    const int victim = processes == 2 ? 1 : 0;
    lane.push_back({.name = "killed" + n,
                    .case_name = "killed",
                    .argument = std::to_string(victim),
                    .processes = processes,
                    .deadline_s = 80,
                    .killed = victim,
                    .terminated = true,
                    .exit_s = 10,
                    .environment = soon});
    lane.push_back({.name = "abort-one" + n,
                    .case_name = "abort_one",
                    .processes = processes,
                    .deadline_s = 80,
                    .environment = soon});
  }
  const auto without_ras = [](Environment environment) {
    environment.emplace("NCCL_RAS_ENABLE", "0");
    return environment;
  };
  for (const char* name : {"exit_without_destroy", "exit_while_waiting", "exit_in_handler", "fork_child"})
    lane.push_back({.name = name,
                    .case_name = name,
                    .processes = 2,
                    .deadline_s = 80,
                    .exit_s = 30,
                    .environment = name == std::string("fork_child") ? without_ras(later) : later});
  lane.push_back({.name = "fork_child-stock",
                  .case_name = "fork_child",
                  .processes = 2,
                  .deadline_s = 80,
                  .stock = true,
                  .report = true,
                  .exit_s = 30});
  return lane;
}

Lane order_lane(double scale) {
  const std::string rounds = scaled(100, scale), few = scaled(5, scale);
  Lane lane = {
      {.name = "two-streams", .case_name = "two_streams", .argument = rounds, .threads = 3},
      {.name = "two-streams-processes",
       .case_name = "two_streams",
       .argument = few,
       .processes = 3,
       .deadline_s = 80},
      {.name = "two-threads", .case_name = "two_threads", .argument = rounds, .threads = 3},
      {.name = "beside", .case_name = "beside", .argument = rounds, .threads = 3},
      {.name = "beside-processes", .case_name = "beside", .argument = few, .processes = 3, .deadline_s = 100},
      {.name = "opposite", .case_name = "opposite", .argument = rounds, .threads = 2, .deadline_s = 60},
      {.name = "opposite-4", .case_name = "opposite", .argument = rounds, .threads = 4, .deadline_s = 60},
      {.name = "opposite-processes",
       .case_name = "opposite",
       .argument = few,
       .processes = 2,
       .deadline_s = 60},
      {.name = "opposite-stock",
       .case_name = "opposite",
       .argument = rounds,
       .threads = 2,
       .deadline_s = 45,
       .stock = true,
       .report = true},
      {.name = "state-kept", .case_name = "state_kept", .processes = 2},
  };
  for (const char* mode : {"global", "thread-local", "relaxed"})
    lane.push_back({.name = std::string("first-in-capture-") + mode,
                    .case_name = "first_in_capture",
                    .argument = mode,
                    .processes = 2});
  lane.push_back({.name = "first-in-capture-global-stock",
                  .case_name = "first_in_capture",
                  .argument = "global",
                  .processes = 2,
                  .stock = true,
                  .report = true});
  lane.push_back({.name = "first-in-capture-threads",
                  .case_name = "first_in_capture",
                  .argument = "relaxed",
                  .threads = 4});
  for (const char* end : {"destroy", "abort"})
    lane.push_back({.name = std::string("graph-after-") + end,
                    .case_name = "graph_after_comm",
                    .argument = end,
                    .threads = 2});
#ifndef ONEHOP_ON_STANDIN
  lane.push_back({.name = "child-graph", .case_name = "child_graph", .processes = 2});
  lane.push_back({.name = "conditional", .case_name = "conditional", .processes = 2});
  const Environment unmixed = {{"NCCL_GRAPH_MIXING_SUPPORT", "0"}};
  lane.push_back({.name = "conditional-unmixed",
                  .case_name = "conditional",
                  .argument = "must",
                  .processes = 2,
                  .environment = unmixed});
  lane.push_back({.name = "conditional-stock",
                  .case_name = "conditional",
                  .processes = 2,
                  .stock = true,
                  .report = true});
  lane.push_back({.name = "conditional-stock-unmixed",
                  .case_name = "conditional",
                  .processes = 2,
                  .stock = true,
                  .report = true,
                  .environment = unmixed});
#endif
  return lane;
}

Lane traffic_lane(double scale) {
  const std::string calls = scaled(100000, scale), replays = scaled(10000, scale);
  const Environment limit = {{"ONEHOP_MAX_BYTES", "64K"}};
  return {
      {.name = "overwritten-2",
       .case_name = "overwritten",
       .argument = calls,
       .threads = 2,
       .deadline_s = 150},
      {.name = "overwritten-4",
       .case_name = "overwritten",
       .argument = calls,
       .threads = 4,
       .deadline_s = 150},
      {.name = "overwritten-processes",
       .case_name = "overwritten",
       .argument = scaled(500, scale),
       .processes = 2,
       .deadline_s = 80},
      {.name = "replayed-2",
       .case_name = "replayed",
       .argument = replays + ",60",
       .threads = 2,
       .deadline_s = 150,
       .environment = limit},
      {.name = "replayed-4",
       .case_name = "replayed",
       .argument = replays + ",90",
       .threads = 4,
       .deadline_s = 180,
       .environment = limit},
      {.name = "replayed-host-2",
       .case_name = "replayed",
       .argument = replays + ",30",
       .threads = 2,
       .deadline_s = 100,
       .environment = {{"ONEHOP_MAX_BYTES", "64K"}, {"ONEHOP_STAGING", "host"}}},
  };
}

Lane late_lane(double scale) {
  return {{.name = "late",
           .case_name = "late",
           .argument = scaled(60, scale),
           .processes = 2,
           .deadline_s = 140}};
}

std::vector<Lane> lanes_of(const std::string& which, double scale) {
  std::vector<Lane> all = {memory_lane(scale)},
                    others = {ends_lane(), order_lane(scale), traffic_lane(scale), late_lane(scale)};
  if (which == "memory") return all;
  if (which == "others") return others;
  all.insert(all.end(), others.begin(), others.end());
  if (which == "all") return all;
  for (Lane& lane : all)
    std::erase_if(lane, [&](const Job& job) { return job.name.find(which) == std::string::npos; });
  return all;
}

class Report {
 public:
  explicit Report(Results& results) : results_(results) {}

  void add(const JobResult& r) {
    const std::lock_guard lock(mutex_);
    const Job& job = *r.job;
    const char* verdict = r.passed ? "passed" : job.report ? "seen" : "FAILED";
    std::printf("%-7s %-26s %d x %d ranks %6.1f s", verdict, job.name.c_str(), job.processes, job.threads,
                r.seconds);
    const char* divider = "  ";
    for (const auto& [name, value] : r.figures) {
      std::printf("%s%s %.6g", divider, name.c_str(), value);
      divider = "; ";
    }
    std::printf("\n");
    if (!r.why.empty()) std::printf("        %s\n", r.why.c_str());
    for (const std::string& note : r.notes) std::printf("        %s\n", note.c_str());
    std::fflush(stdout);
    Results::Json figures = Results::Json::object();
    for (const auto& [name, value] : r.figures) figures[name] = value;
    results_.add_to("cases", {{"case", job.name},
                              {"side", job.stock ? "nccl" : "onehop"},
                              {"processes", job.processes},
                              {"ranks", job.ranks()},
                              {"argument", job.argument},
                              {"environment", job.environment},
                              {"judged", !job.report},
                              {"passed", r.passed},
                              {"why", r.why},
                              {"seconds", r.seconds},
                              {"figures", figures},
                              {"notes", r.notes}});
    if (!job.report) ++(r.passed ? passed : failed);
  }
  int passed = 0, failed = 0;

 private:
  Results& results_;
  std::mutex mutex_;
};

int run_all(int argc, char** argv) {
  const std::string out = argv[1], logs = argv[2], which = argc > 3 ? argv[3] : "all";
  const double seconds = argc > 4 ? std::atof(argv[4]) : 500, scale = argc > 5 ? std::atof(argv[5]) : 1,
               begin = now_s();
  alarm(static_cast<unsigned>(seconds) + 60);
  mkdir(logs.c_str(), 0755);
  int gpus = 0;
  MUST(cudaGetDeviceCount(&gpus));
  if (std::getenv("NCCL_NET_PLUGIN") == nullptr) fail("NCCL_NET_PLUGIN is not set");
  std::vector<Lane> lanes = lanes_of(which, scale);
  int version = 0;
  MUST(ncclGetVersion(&version));
  Results results("failures, lifetimes and mixed use through the whole plugin", argc, argv,
                  gpus > 1 ? "NVLink or PCIe" : "same GPU", version);
  Report report(results);
  std::vector<std::thread> threads;
  for (const Lane& lane : lanes)
    threads.emplace_back([&] {
      for (const Job& job : lane) {
        JobResult result;
        result.job = &job;
        const double left = begin + seconds - now_s();
        if (left < job.deadline_s && left < 0.5 * seconds)
          result.why = "not run: no time left";
        else
          result = run(job, logs);
        report.add(result);
      }
    });
  for (std::thread& thread : threads) thread.join();
  results.write(out);
  std::printf("nccl-life: %d passed, %d failed\n", report.passed, report.failed);
  return report.failed == 0 && report.passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  if (argc > 1 && std::string(argv[1]) == "--process") return be_process(argc, argv);
  if (argc < 3) fail("usage: nccl-life OUT.json LOGS [all|memory|others|SUBSTRING] [SECONDS [SCALE]]");
  return run_all(argc, argv);
}
