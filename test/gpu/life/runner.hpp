// Runs jobs of this program's own processes: each job a fresh set, with a deadline, in a process group that
// is killed at the end whatever happened.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace onehop::test {

struct Job {
  std::string name;
  std::string case_name, argument = "";
  int processes = 1, threads = 1;  ///< ranks: a thread each
  double deadline_s = 60;
  bool stock = false;       ///< without onehop
  bool report = false;      ///< to be known, not to be judged
  int killed = -1;          ///< the process that is to die of SIGKILL
  bool terminated = false;  ///< the others are ended by SIGTERM, else they exit with 0
  double exit_s = 0;        ///< most seconds from leaving, or from SIGTERM, to the end; 0: not looked at
  std::map<std::string, std::string> environment = {};

  int ranks() const { return processes * threads; }
};

struct JobResult {
  const Job* job = nullptr;
  bool passed = false;
  double seconds = 0;
  std::string why;                        ///< it failed
  std::map<std::string, double> figures;  ///< the largest of all ranks
  std::vector<std::string> notes;
};

/// Standard output and error of each process go to LOGS/JOB.PROCESS.log.
JobResult run(const Job&, const std::string& logs);

/// The other side: what a process of a job does. Exit code.
int be_process(int argc, char** argv);

}  // namespace onehop::test
