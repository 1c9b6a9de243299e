// What the user asked for, and the cases that follow.
#pragma once

#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/bench/case.hpp"

namespace onehop::bench {

/// How ranks are spread over processes and threads.
enum class Drive {
  kAuto,
  kProcesses,  ///< a process for each rank
  kThreads,    ///< one process, a thread for each rank
  kGroup,      ///< one process, one thread: each call is a group of all ranks' calls
};

struct Options {
  int ranks = 0;  ///< 0: one for each GPU, or two
  Drive drive = Drive::kAuto;
  std::string sizes;  ///< a list; empty: the ladder
  bool decode = false;
  std::string models;  ///< a part of their names; empty: all
  std::vector<std::string> types{"bfloat16"};
  std::vector<std::string> modes;  ///< empty: all, or the graphs for the decode profile
  std::string places = "out";      ///< in, out, both
  size_t calls = 100, repetitions = 20, replays = 5;
  bool quick = false;
  bool rivals = false, control = false;
  std::vector<std::string> more_rivals;
  std::string plugin, nccl, cudart, json, links, commit, title;
  double deadline_s = 60;
  bool verbose = false;
  std::string command;  ///< as it was typed
};

/// "8,64,4K,42K,1M". K and M are KiB and MiB.
Result<std::vector<size_t>> parse_sizes(const std::string& text);

/// Powers of two from 8 B to 64 MiB, and 42 KiB.
std::vector<size_t> ladder();

/// How many calls of this size a graph gets where `wanted` are wanted: fewer for large ones, whose buffers
/// would take too much memory and time.
size_t calls_for(size_t bytes, size_t wanted);

/// In the order in which they are measured.
Result<std::vector<Case>> cases_of(const Options& options);

/// Takes out what cannot be measured with so many ranks on one GPU. `same_process`: they are in one process.
/// `channels`: the most that the user lets NCCL have, 0: any number.
std::vector<Skipped> take_out(std::vector<Case>& cases, int ranks_per_gpu, bool same_process, int channels);

}  // namespace onehop::bench
