// What is said about an outcome: on the terminal, and as a result file.
#pragma once

#include <string>

#include "tools/onehop/bench/channel.hpp"
#include "tools/onehop/bench/exit_code.hpp"
#include "tools/onehop/bench/run.hpp"

namespace onehop::bench {

/// Tables, what was left out, the verdict, and what NCCL's own settings would bring.
std::string report(const Outcome& outcome);

/// The form of docs/results/.
Json result_file(const Outcome& outcome, const Options& options);

/// Wrong results first. Times of the stand-in decide nothing.
ExitCode exit_code(const Outcome& outcome);

/// The fastest of stock NCCL's sides; the index among the sides.
size_t best_nccl(const Outcome& outcome, const CaseFigures& figures);

}  // namespace onehop::bench
