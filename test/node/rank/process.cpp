// The process around the job: its environment, its output, its children.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {

/// Prints the environment after a job: the test compares with a run without onehop.
SCENARIO(environment) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    const Words data(1, 1);
    MUST(sum(data, data, comm, stream));
    stream.synchronize();
  }
  MUST(ncclCommDestroy(comm));
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  std::sort(variables.begin(), variables.end());
  for (const std::string& variable : variables) std::printf("%s\n", variable.c_str());
}

/// A job that forks after set-up. In the child everything goes to NCCL, and the parent does not notice.
SCENARIO(forks) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  Chain chain(self.ranks, 6);
  for (size_t i = 0; i < 3; ++i) chain.call(i, comm, stream);
  stream.synchronize();
  std::fflush(nullptr);
  const pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    // Enqueued, and no more than that: the child has no thread that would serve the stream.
    const Counted counted;
    const ncclResult_t result = sum(chain[0], chain[1], comm, stream);
    // By exit(), so that what is left of the plugin runs; it must not write the parent's statistics.
    std::exit(result == ncclSuccess && counted.taken() == 0 && counted.passed() == (Loaded().found() ? 1 : 0)
                  ? 42
                  : 1);
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child);
  must(WIFEXITED(status) && WEXITSTATUS(status) == 42, "the child took the call");
  for (size_t i = 3; i < 6; ++i) chain.call(i, comm, stream);
  stream.synchronize();
  chain.check();
  self.expect("taken", 6);
  MUST(ncclCommDestroy(comm));
}

/// The last rank comes late to its first call, by the seconds of the argument.
SCENARIO(late) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  const Words data(1, 1);
  if (self.rank == self.ranks - 1)
    std::this_thread::sleep_for(std::chrono::seconds(std::stoi(self.argument)));
  MUST(sum(data, data, comm, stream));
  stream.synchronize();
  must(data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum");
  self.expect("taken");
  MUST(ncclCommDestroy(comm));
}

/// Prints the return code of the first all-reduce, and the state of the communicator: with onehop on some
/// ranks only, both are errors, at once.
SCENARIO(first_call) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  const Words data(1, 1);
  const ncclResult_t result = sum(data, data, comm, stream);
  stream.synchronize();
  ncclResult_t state = ncclSuccess;
  MUST(ncclCommGetAsyncError(comm, &state));
  std::printf("%s\n", result == ncclSuccess && state == ncclSuccess ? "fine" : "an error");
  self.meet("told");
  MUST(ncclCommAbort(comm));
}

}  // namespace onehop::node
