// What is to be seen of a running process: what it has mapped, and what its environment was when it began.
#pragma once

#include <string>
#include <vector>

#include "plugin/statistics_page.hpp"
#include "tools/onehop/environment.hpp"

namespace onehop::tool {

struct ProcessFacts {
  int pid = 0;
  std::string trouble;            ///< why nothing is known of it
  std::string plugin;             ///< onehop's object, as mapped; empty: not loaded
  std::vector<std::string> nccl;  ///< mapped libnccl files
  Environment environment;        ///< NCCL_ and ONEHOP_ variables, LD_PRELOAD
  Result<StatisticsSnapshot> statistics = Error{"not read"};
};

ProcessFacts read_process(int pid, const std::string& proc = "/proc");

}  // namespace onehop::tool
