// The jobs that the tests run, and what a finished one says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/object/process.hpp"

namespace onehop::test {

inline std::string program(const std::string& name) {
  return PROGRAMS "/" + name;
}
inline std::string fake(const std::string& name) {
  return PROGRAMS "/lib" + name + ".so";
}

/// Runs test/object/scripted_job.c. Its steps say what it does.
inline Outcome run_script(const std::vector<std::string>& steps, Environment environment = {}) {
  std::vector<std::string> command{program("scripted_job")};
  command.insert(command.end(), steps.begin(), steps.end());
  environment.emplace("ONEHOP_TEST_PLUGIN", PLUGIN);
  return run(command, environment);
}

/// One line of test/object/calls.h: "LIBRARY FUNCTION RESULT[ +SEEN]".
struct CallLine {
  std::string call;  ///< library and function
  int result = 0;
  int seen = -1;  ///< ncclAllReduce calls that reached onehop; -1: it is not loaded
};

inline std::vector<CallLine> calls_of(const Outcome& outcome) {
  std::vector<CallLine> calls;
  for (const std::string& line : outcome.lines()) {
    char function[64];
    CallLine call;
    int library = 0;
    const int fields =
        std::sscanf(line.c_str(), "%d %63s %d +%d", &library, function, &call.result, &call.seen);
    if (fields < 3) continue;
    call.call = std::to_string(library) + " " + function;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace onehop::test
