// `onehop bench`: stock NCCL and onehop side by side, see docs/bench.md.
#pragma once

#include <CLI/CLI.hpp>

namespace onehop::bench {

/// Adds the subcommand. Its exit code comes as a CLI::RuntimeError; the meanings are in exit_code.hpp.
void add_bench(CLI::App& app);

}  // namespace onehop::bench
