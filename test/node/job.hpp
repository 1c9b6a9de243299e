// A job of several processes of node_rank, and what came out of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/node/confine.hpp"

namespace onehop::node {

using Environment = std::map<std::string, std::string>;

/// How the plugin gets into the processes.
enum class Load { kNetPlugin, kPreload, kBoth, kNot };

/// For Job::code: whatever it is.
inline constexpr int kAnyCode = -2;

/// What to run. Each process has of the test's own environment nothing that concerns NCCL, CUDA or onehop.
struct Job {
  std::string scenario = {};
  int ranks = 2;
  std::string argument = {};
  Environment environment = {};                   ///< of all ranks
  std::map<int, Environment> of = {};             ///< more of it, of single ranks
  std::map<std::string, std::string> files = {};  ///< in the job's folder, which each process is started in
  Load load = Load::kNetPlugin;
  std::map<int, Load> load_of = {};
  Confinement confinement = {};              ///< of all ranks
  std::map<int, Confinement> confined = {};  ///< of single ranks, if it is another
  int deadline_s = 60;
  int code = 0;                     ///< that every process ends with; 128 + signal
  std::map<int, int> code_of = {};  ///< of single ranks, if it is another
  /// What else happens, once all processes are started. It must leave waiting for them to run().
  std::function<void(const std::vector<pid_t>&, const std::string& folder)> meanwhile = {};

  int code_for(size_t rank) const {
    const auto of_rank = code_of.find(static_cast<int>(rank));
    return of_rank != code_of.end() ? of_rank->second : code;
  }
};

/// What one process left behind.
struct Process {
  int code = -1;  ///< exit code; 128 + signal
  std::string output, errors;
  std::string statistics;  ///< ONEHOP_STATS_FILE; empty if it was not written

  /// Lines of onehop's log, without time and process: "info: ON for ...".
  std::vector<std::string> log() const;
  /// Those that contain `part`.
  std::vector<std::string> log(const std::string& part) const;
  /// Calls that the scenario says must be counted, by what they are counted as.
  std::map<std::string, uint64_t> expected() const;
  /// The totals of the statistics, in the same form: "taken", and the reasons of passed calls ('_' for ' ').
  std::map<std::string, uint64_t> counted() const;
};

struct Outcome {
  std::vector<Process> processes;
  std::map<std::string, std::string>
      files;  ///< what is left in the job's folder, besides what is in processes

  /// Lines of all ranks' logs that contain `part`.
  std::vector<std::string> log(const std::string& part) const;
};

/// Whether any process of the job is confined: then NCCL's memory is in the job's folder.
bool is_confined(const Job&);

/// Runs a job and expects that every process ends with its code before the deadline; those that do not are
/// killed.
Outcome run(const Job&);

/// run(), and the statistics say exactly what the scenario expects. Where a communicator is to be declined,
/// so are all its calls: `expected` by the scenario is for a communicator that is on.
Outcome run_counted(const Job&);

}  // namespace onehop::node
