// Jobs that lose a process to kill -9, at every place of set-up and at random moments.
//
// ONEHOP_KILL_POINTS=N runs points 0 .. N-1, ONEHOP_KILL_FIRST=M begins with M, ONEHOP_KILL_JOBS=J runs J
// beside each other, ONEHOP_KILL_RESULTS=FILE writes what came out, for docs/results.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "test/cpu_results.hpp"
#include "test/node/kill_point.hpp"

namespace onehop::node {
namespace {

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What all points with something in common came to.
struct Tally {
  uint64_t points = 0, wrong = 0, left_themselves = 0, ended = 0;
  std::vector<double> gone_s;
  void add(const KillOutcome& outcome) {
    ++points;
    wrong += !outcome.problem.empty();
    left_themselves += static_cast<uint64_t>(outcome.left_themselves);
    ended += static_cast<uint64_t>(outcome.ended);
    gone_s.push_back(outcome.gone_s);
  }
};

void write_results(const std::string& path, const std::map<std::string, Tally>& tallies) {
  std::string name =
      "ONEHOP_KILL_POINTS=" + std::to_string(tallies.at("all").points) + " build/test/node/node_kill_test";
  char* argv[] = {name.data()};
  test::CpuResults results("jobs that lose a process to kill -9; us: from the first death to the last", 1,
                           argv, "CPU stand-in");
  for (const auto& [what, tally] : tallies) {
    std::vector<double> sorted = tally.gone_s;
    std::sort(sorted.begin(), sorted.end());
    results.add({{"side", "onehop"},
                 {"plan", "auto"},
                 {"method", what},
                 {"ranks", "2 to 8"},
                 {"processes", "2 to 8"},
                 {"bytes", 2000},
                 {"type", "uint32"},
                 {"op", "sum"},
                 {"mode", "eager, graph and groups"},
                 {"us", sorted[sorted.size() / 2] * 1e6},
                 {"us_max", sorted.back() * 1e6},
                 {"wrong", tally.wrong},
                 {"points", tally.points},
                 {"survivors_that_left_themselves", tally.left_themselves},
                 {"survivors_ended_by_sigterm", tally.ended}});
  }
  results.write(path);
}

// Protects: the survivors of a killed process, the node, and the next job. Every place of set-up comes first,
// so a few points of these are as good as chosen.
TEST(Kill, LeavesNoProcessAndNoName) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a process leaves behind becomes a child of this one
  const uint64_t first = number_in("ONEHOP_KILL_FIRST", 0), count = number_in("ONEHOP_KILL_POINTS", 0);
  std::vector<uint64_t> numbers;
  if (count > 0) {
    for (uint64_t number = first; number < count; ++number) numbers.push_back(number);
  } else {
    for (uint64_t number = 3; number < 160; number += 13) numbers.push_back(number);
    for (uint64_t number = 1000; number < 1008; ++number) numbers.push_back(number);
  }
  std::map<std::string, Tally> tallies;
  std::mutex mutex;
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < number_in("ONEHOP_KILL_JOBS", 3); ++t)
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < numbers.size();) {
        const KillPoint point = KillPoint::of(numbers[i]);
        const KillOutcome outcome = run_kill_point(point);
        EXPECT_EQ(outcome.problem, "") << point.text();
        const std::lock_guard lock(mutex);
        tallies["all"].add(outcome);
        tallies[point.place.empty() ? "at a random moment" : "at " + outcome.place].add(outcome);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
  const Tally& all = tallies["all"];
  std::printf("%llu points, %llu wrong, %llu survivors left by themselves, %llu were ended\n",
              static_cast<unsigned long long>(all.points), static_cast<unsigned long long>(all.wrong),
              static_cast<unsigned long long>(all.left_themselves),
              static_cast<unsigned long long>(all.ended));
  if (numbers.size() >= 100) {
    EXPECT_GT(all.left_themselves, 0u) << "no kernel was waited in: this test shows little";
  }
  if (const char* path = std::getenv("ONEHOP_KILL_RESULTS")) write_results(path, tallies);
}

}  // namespace
}  // namespace onehop::node
