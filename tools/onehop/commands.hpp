// The subcommands of `onehop`: each adds itself to the command line, in a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace onehop::tool {

/// Ends the command with this exit code: thrown by a subcommand's call-back.
struct Exit {
  int code;
};

/// What every subcommand's exit code means, unless its help says otherwise.
inline constexpr int kOk = 0, kFound = 1, kUsage = 2;

void add_doctor(CLI::App&);
void add_examine(CLI::App&);
void add_help(CLI::App&);
/// `behind`: "--" and what follows it, which is not for CLI11 (see main.cpp); empty if there is none.
void add_run(CLI::App&, std::vector<std::string> behind);
void add_stats(CLI::App&);
void add_tune(CLI::App&);
void add_version(CLI::App&);

}  // namespace onehop::tool
