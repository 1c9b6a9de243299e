// What came of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/operation.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {

struct Outcome {
  struct Stopped {
    Stop why;
    uint32_t missing_rank;
  };
  std::vector<Stopped> stops;         ///< by rank
  std::vector<uint32_t> finished;     ///< operations that each rank finished
  std::vector<std::string> problems;  ///< empty: all operations ended with the right result everywhere

  bool timed_out() const;

  /// The first few problems, for a failure message.
  std::string text() const;
};

/// Where a rank was when it was stopped, and which rank it waited for.
std::string describe_stop(const CommView& comm, const Step& step, uint32_t operation);

}  // namespace onehop::test
