#include "test/node/kill_point.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "test/node/job.hpp"
#include "test/node/names.hpp"
#include "test/node/rank/mix.hpp"

namespace onehop::node {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kTimeoutS = 2;
/// Beyond ONEHOP_TIMEOUT_S, on a machine with much else to do.
constexpr std::chrono::seconds kGrace{30};
/// Places of a set-up of two ranks in device memory, and of the calls after it.
constexpr uint64_t kPlaces = 160;

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

template <class Condition>
bool wait_until(Clock::time_point deadline, Condition&& condition) {
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

/// What the launcher does, and sees.
class Launcher {
 public:
  Launcher(const KillPoint& point, KillOutcome& outcome) : point_(point), outcome_(outcome) {}

  void operator()(const std::vector<pid_t>& pids, const std::string& folder) {
    if (point_.place.empty()) {
      std::this_thread::sleep_for(std::chrono::duration<double>(point_.after_s));
      for (const int victim : point_.victims) kill(pids[static_cast<size_t>(victim)], SIGKILL);
    }
    const pid_t first = pids[static_cast<size_t>(point_.victims[0])];
    if (!wait_until(Clock::now() + std::chrono::seconds(60), [&] { return has_ended(first); }))
      return problem("the victim did not come to its place");
    const auto since = Clock::now();
    for (size_t i = 1; i < point_.victims.size(); ++i)
      kill(pids[static_cast<size_t>(point_.victims[i])], SIGKILL);

    // Whom onehop holds up at this moment must leave by itself.
    std::this_thread::sleep_for(milliseconds(20));
    std::vector<size_t> held;
    for (size_t r = 0; r < pids.size() && point_.patient; ++r)
      if (!is_victim(r) && where(folder, r) == kInOnehop) held.push_back(r);
    const auto all_have_left = [&] {
      return std::all_of(held.begin(), held.end(), [&](size_t r) {
        // It may have been about to go on, into NCCL: the loss is then NCCL's to notice.
        return has_ended(pids[r]) || where(folder, r) != kInOnehop;
      });
    };
    if (!wait_until(since + std::chrono::seconds(kTimeoutS) + kGrace, all_have_left))
      problem("a kernel did not leave after ONEHOP_TIMEOUT_S");

    for (const pid_t pid : pids) kill(pid, SIGTERM);
    const auto all_ended = [&] { return std::all_of(pids.begin(), pids.end(), has_ended); };
    if (!wait_until(Clock::now() + kGrace, all_ended)) {
      problem("a process did not end at SIGTERM");
      for (const pid_t pid : pids) kill(pid, SIGKILL);
    }
    outcome_.gone_s = std::chrono::duration<double>(Clock::now() - since).count();
  }

 private:
  bool is_victim(size_t rank) const {
    return std::count(point_.victims.begin(), point_.victims.end(), static_cast<int>(rank)) != 0;
  }
  static int32_t where(const std::string& folder, size_t rank) {
    int32_t value = kElsewhere;
    std::ifstream(folder + "/where." + std::to_string(rank), std::ios::binary)
        .read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  }
  void problem(const std::string& what) {
    if (outcome_.problem.empty()) outcome_.problem = what;
  }

  const KillPoint& point_;
  KillOutcome& outcome_;
};

Job job_of(const KillPoint& point, uint32_t rounds) {
  Job job{.scenario = "mix", .ranks = point.ranks};
  job.argument =
      std::to_string(point.number) + " " + std::to_string(rounds) + (point.exits ? " exits" : " dies");
  job.environment = {{"ONEHOP_MAX_BYTES", "16K"}};
  if (point.in_host) job.environment["ONEHOP_STAGING"] = "host";
  if (!point.algo.empty()) job.environment["ONEHOP_ALGO"] = point.algo;
  if (point.measured) {
    job.environment["ONEHOP_MEASURE"] = "quick";
    job.environment["ONEHOP_STANDIN_TIMES"] = "1";
  }
  if (point.preloaded) job.load = Load::kPreload;
  // LeakSanitizer looks at a process that exits from a helper process, which stays if that process is ended.
  const char* options = std::getenv("ASAN_OPTIONS");
  job.environment["ASAN_OPTIONS"] = (options == nullptr ? "" : std::string(options) + ":") + "detect_leaks=0";
  return job;
}

/// What each process ended with, and what it wrote.
void judge(const KillPoint& point, const Outcome& job, KillOutcome& outcome) {
  for (size_t r = 0; r < job.processes.size(); ++r) {
    const Process& process = job.processes[r];
    const bool victim = std::count(point.victims.begin(), point.victims.end(), static_cast<int>(r)) != 0;
    if (process.code == 128 + SIGKILL && victim) {
      const size_t at = process.errors.find("killed at place ");
      if (at != std::string::npos) {
        const size_t name = process.errors.find(": ", at) + 2;
        outcome.place = process.errors.substr(name, process.errors.find('\n', name) - name);
      }
      continue;
    }
    outcome.left_themselves += process.code == kLost;
    outcome.ended += process.code == 128 + SIGTERM;
    // A second victim may have noticed the loss of the first before its turn came.
    if (process.code == kLost || process.code == 128 + SIGTERM) continue;
    if (outcome.problem.empty())
      outcome.problem =
          "rank " + std::to_string(r) + " ended with " + std::to_string(process.code) + ": " + process.errors;
  }
}

}  // namespace

KillPoint KillPoint::of(uint64_t number) {
  KillPoint point;
  point.number = number;
  std::mt19937_64 random(number * 2654435761u + 1);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  if (number < kPlaces) {
    point.victims = {static_cast<int>(number % 2)};
    point.place = std::to_string(number + 1);
    point.patient = number % 4 == 0;
    point.exits = number % 3 == 0;
    return point;
  }
  point.ranks = static_cast<int>(2 + below(3) * below(4));
  point.victims = {static_cast<int>(below(static_cast<uint64_t>(point.ranks)))};
  if (point.ranks > 2 && below(4) == 0)
    point.victims.push_back(
        (point.victims[0] + 1 + static_cast<int>(below(static_cast<uint64_t>(point.ranks - 1)))) %
        point.ranks);
  if (below(2) == 0)
    point.place = std::to_string(1 + below(600));
  else
    point.after_s = static_cast<double>(below(1200)) / 1000;
  point.patient = below(2) == 0;
  point.exits = below(3) == 0;
  point.in_host = below(3) == 0;
  point.preloaded = below(4) == 0;
  point.measured = below(6) == 0;
  const std::vector<std::string> algos = {"oneshot", "twoshot", "oneshot-pull", "twoshot-pull"};
  if (!point.measured && below(2) == 0) point.algo = algos[below(algos.size())];
  return point;
}

std::string KillPoint::text() const {
  std::ostringstream text;
  text << "point " << number << ": " << ranks << " ranks, rank " << victims[0];
  if (victims.size() > 1) text << " and then rank " << victims[1];
  if (place.empty())
    text << " killed after " << after_s << " s";
  else
    text << " killed at place " << place;
  for (const auto& [set, name] : {std::pair(patient, "patient"), std::pair(exits, "exits at SIGTERM"),
                                  std::pair(in_host, "host memory"), std::pair(preloaded, "preloaded"),
                                  std::pair(measured, "measured")})
    if (set) text << ", " << name;
  if (!algo.empty()) text << ", " << algo;
  return text.str();
}

KillOutcome run_kill_point(const KillPoint& point) {
  KillOutcome outcome;
  const std::set<std::string> before = names();
  Job job = job_of(point, 1'000'000'000);
  job.deadline_s = 120;
  job.code = kAnyCode;
  job.environment["ONEHOP_TIMEOUT_S"] = std::to_string(kTimeoutS);
  if (!point.place.empty()) job.of[point.victims[0]] = {{"ONEHOP_STANDIN_KILL", point.place}};
  job.meanwhile = Launcher(point, outcome);
  const Outcome killed = run(job);
  judge(point, killed, outcome);
  if (const std::string left = new_name(before); !left.empty() && outcome.problem.empty())
    outcome.problem = left + " is left behind";
  if (!outcome.problem.empty()) return outcome;
  // The node is as good as new.
  Job again = job_of(point, 12);
  again.code = kAnyCode;
  const Outcome next = run(again);
  for (const Process& process : next.processes)
    if (process.code != 0 && outcome.problem.empty())
      outcome.problem = "the next job ended with " + std::to_string(process.code) + ": " + process.errors;
  return outcome;
}

}  // namespace onehop::node
