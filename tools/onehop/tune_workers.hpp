// The processes that measure: with onehop or with stock NCCL alone.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "plugin/result.hpp"

namespace onehop::tune {

struct WorkerSetup {
  std::string program;  ///< onehop-tune-worker
  std::string plugin;   ///< that they load; empty: none
  int ranks = 2;
  bool one_process = false;                        ///< for all ranks
  bool quiet = true;                               ///< what they write to standard error goes nowhere
  std::map<std::string, std::string> environment;  ///< added to the own; an empty value takes it away
  int deadline_s = 20;                             ///< for one answer
};

/// Ends with this process, however that ends.
class Workers {
 public:
  explicit Workers(WorkerSetup setup) : setup_(std::move(setup)) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// Starts them, and makes their communicator. What the first says of the machine.
  Result<std::string> start();
  bool running() const { return !processes_.empty(); }
  void stop();

  /// Asks all of them; the answers. After an Error they are stopped.
  Result<std::vector<std::string>> ask(const std::string& line) { return ask(line, setup_.deadline_s); }

 private:
  struct Process {
    pid_t pid = -1;
    int to = -1, from = -1;
    std::string unread;
  };

  Status launch(int first, int count);
  Result<std::vector<std::string>> ask(const std::string& line, int deadline_s, size_t of_first = SIZE_MAX);

  const WorkerSetup setup_;
  std::vector<Process> processes_;
};

}  // namespace onehop::tune
