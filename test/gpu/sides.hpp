// Stock NCCL and onehop in one run: this program again as a child, once for each side, without the plugin and
// with it.
#pragma once

#include <sys/wait.h>

#include <cstring>
#include <fstream>

#include "test/gpu/nccl_node.hpp"
#include "test/gpu/results.hpp"

namespace onehop::test {

constexpr const char* kSides[] = {"nccl", "onehop"};

inline bool with_onehop() {
  return std::getenv("NCCL_NET_PLUGIN") != nullptr;
}

/// Runs this program as one side, and adds what it wrote to `all`, list by list.
inline void run_side(char** argv, const std::string& out, const char* side, Results::Json& all) {
  const std::string part = out + "." + side;
  const pid_t child = fork();
  if (child == 0) {
    setenv("ONEHOP_TEST_SIDE", part.c_str(), 1);
    if (std::strcmp(side, "nccl") == 0) unsetenv("NCCL_NET_PLUGIN");
    execv("/proc/self/exe", argv);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail(std::string("the side ") + side + " failed");
  Results::Json written = Results::Json::parse(std::ifstream(part));
  unlink(part.c_str());
  if (all.is_null()) {
    all = std::move(written);
    return;
  }
  for (const auto& [name, list] : written.items())
    if (list.is_array()) all[name].insert(all[name].end(), list.begin(), list.end());
}

/// Both sides, `rounds` times by turns, into one file.
inline void run_sides(char** argv, const std::string& out, int rounds) {
  if (!with_onehop()) fail("NCCL_NET_PLUGIN is not set");
  Results::Json all;
  for (int round = 0; round < rounds; ++round)
    for (const char* side : kSides) run_side(argv, out, side, all);
  std::ofstream(out) << all.dump(1) << "\n";
}

/// main() of a comparison, "PROGRAM LINKS OUT.json RANKS...". `measure` adds what one side takes with so many
/// ranks.
inline int compare_sides(int argc, char** argv, const std::string& title, int rounds,
                         const std::function<void(int ranks, Results&)>& measure) {
  if (argc < 4) fail(std::string("usage: ") + argv[0] + " LINKS OUT.json RANKS...");
  const char* part = std::getenv("ONEHOP_TEST_SIDE");
  if (part == nullptr) {
    run_sides(argv, argv[2], rounds);
    return 0;
  }
  int version = 0;
  MUST(ncclGetVersion(&version));
  Results results(title, argc, argv, argv[1], version);
  for (int i = 3; i < argc; ++i) measure(std::atoi(argv[i]), results);
  if (with_onehop() != (LoadedOnehop().statistics().taken > 0))
    fail("onehop is not what it should be in this run");
  results.write(part);
  return 0;
}

}  // namespace onehop::test
