#include "tools/onehop/tune_timing.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

namespace onehop::tune {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Of the slowest; an Error if any result was wrong.
Result<double> time_of(const std::vector<std::string>& answers, bool takes) {
  double slowest = 0;
  for (const std::string& answer : answers) {
    std::istringstream words(answer);
    std::string word;
    double us = 0;
    size_t wrong = 0;
    bool taken = false;
    words >> word >> us >> wrong >> taken;
    if (!words || word != "time") return Error{"no time: " + answer};
    if (wrong > 0) return Error{std::to_string(wrong) + " values are wrong"};
    if (taken != takes) return Error{takes ? "the calls were passed to NCCL" : "the calls were not NCCL's"};
    slowest = std::max(slowest, us);
  }
  return slowest;
}

}  // namespace

Efforts efforts_of(const std::string& name) {
  if (name == "least") return {{2, 1, 1}, {2, 1, 1}};
  if (name == "long") return {{100, 11, 1}, {100, 21, 9}};
  return {{50, 7, 1}, {100, 11, 5}};
}

Result<Times> time_by_turns(Workers& stock, Workers& other, bool takes, uint64_t bytes,
                            const Effort& effort) {
  const std::string line = "time " + std::to_string(bytes) + " " + std::to_string(effort.calls) + " " +
                           std::to_string(effort.samples);
  const auto dropped = [](const std::string& why) { return Times{0, 0, why}; };
  std::vector<double> us, nccl_us;
  for (int turn = 0; turn < effort.turns; ++turn) {
    const auto nccl = stock.ask(line);
    if (!nccl) return Error{"stock NCCL: " + nccl.reason()};
    const Result<double> nccl_time = time_of(*nccl, false);
    if (!nccl_time) return Error{"stock NCCL: " + nccl_time.reason()};
    const auto answers = other.ask(line);
    if (!answers) return dropped(answers.reason());
    const Result<double> time = time_of(*answers, takes);
    if (!time) return dropped(time.reason());
    nccl_us.push_back(*nccl_time);
    us.push_back(*time);
  }
  return Times{median(us), median(nccl_us), {}};
}

}  // namespace onehop::tune
