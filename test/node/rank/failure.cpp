// Communicators that end badly: every waiting rank gets away, and NCCL's own interface says why.
#include <signal.h>

#include <chrono>
#include <cstring>

#include "test/node/patience.hpp"
#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A communicator that is set up and on which rank 0 then does not come: the others' calls wait.
struct Stuck {
  explicit Stuck(Rank& self) : comm(self.join()), data(64, 1) {
    MUST(sum(data, data, comm, stream));
    stream.synchronize();
    self.expect("taken");
    self.meet("set up");
    if (self.rank == 0) return;
    MUST(sum(data, data, comm, stream));
    MUST(sum(data, data, comm, stream));
    self.expect("taken", 2);
    std::this_thread::sleep_for(milliseconds(30));
    must(cudaStreamQuery(stream) == cudaErrorNotReady, "a call did not wait for rank 0");
  }
  ncclResult_t state() const {
    ncclResult_t result = ncclSuccess;
    MUST(ncclCommGetAsyncError(comm, &result));
    return result;
  }
  ncclComm_t comm;
  Stream stream;
  Words data;
};

/// Less than a second, on a machine with nothing else to do; kernels that do not hear of the end wait for
/// half an hour.
void must_be_quick(Clock::time_point since) {
  must(Clock::now() - since < std::chrono::seconds(5 * kPatience), "the waiting calls did not leave");
}

}  // namespace

/// Rank 0 aborts while the others wait. They stay, until they abort too.
SCENARIO(abort_one) {
  Stuck stuck(self);
  if (self.rank != 0) {
    self.wait_for("aborted.0");
    std::this_thread::sleep_for(milliseconds(20));
    must(cudaStreamQuery(stuck.stream) == cudaErrorNotReady, "a waiting call left before its rank aborted");
  }
  const auto since = Clock::now();
  MUST(ncclCommAbort(stuck.comm));
  stuck.stream.synchronize();
  must_be_quick(since);
  self.say("aborted." + std::to_string(self.rank));
  self.meet("all aborted");
  // The node is as good as new.
  const ncclComm_t next = self.join("next");
  stuck.data.fill(1);
  MUST(sum(stuck.data, stuck.data, next, stuck.stream));
  stuck.stream.synchronize();
  must(stuck.data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum after an abort");
  self.expect("taken");
  MUST(ncclCommDestroy(next));
}

/// ncclCommRevoke frees the waiting calls; later ones get NCCL's error; a child works.
SCENARIO(revoke) {
  Stuck stuck(self);
  const auto since = Clock::now();
  MUST(ncclCommRevoke(stuck.comm, NCCL_REVOKE_DEFAULT));
  stuck.stream.synchronize();
  must_be_quick(since);
  MUST(sum(stuck.data, stuck.data, stuck.comm, stuck.stream) == ncclInvalidUsage);
  self.expect("declined");
  ncclComm_t child = nullptr;
  MUST(ncclCommSplit(stuck.comm, 0, self.rank, &child, nullptr));
  stuck.data.fill(1);
  MUST(sum(stuck.data, stuck.data, child, stuck.stream));
  stuck.stream.synchronize();
  must(stuck.data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum of the child");
  self.expect("taken");
  MUST(ncclCommDestroy(child));
  MUST(ncclCommDestroy(stuck.comm));
}

/// Another thread aborts while the first call waits for rank 0 to set up. Nothing of it may be left: the next
/// communicator gets the address of this one.
SCENARIO(abort_in_set_up) {
  Stream stream;
  const Words data(64, 1);
  for (const char* name : {"first", "second"}) {
    ncclComm_t comm = self.join(name);
    if (self.rank != 0) {
      const auto since = Clock::now();
      std::thread caller([&] {
        MUST(cudaSetDevice(self.rank));
        sum(data, data, comm, stream);
        cudaStreamSynchronize(stream);
      });
      std::this_thread::sleep_for(milliseconds(50));
      MUST(ncclCommAbort(comm));
      caller.join();
      must_be_quick(since);
    } else {
      MUST(ncclCommAbort(comm));
    }
    self.meet(std::string("aborted ") + name);
    comm = self.join(std::string("after ") + name);
    data.fill(1);
    const Counted counted;
    MUST(sum(data, data, comm, stream));
    stream.synchronize();
    must(data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum after an abort");
    MUST(!Loaded().found() || counted.taken() == 1);
    MUST(ncclCommDestroy(comm));
  }
}

/// Rank 0 is killed while the others wait for its words. They go on looking into its memory, until they time
/// out.
SCENARIO(one_is_killed) {
  Stuck stuck(self);
  if (self.rank == 0) raise(SIGKILL);
  const auto since = Clock::now();
  while (stuck.state() == ncclSuccess) {
    must(Clock::now() - since < std::chrono::seconds(10 * kPatience), "no asynchronous error");
    std::this_thread::sleep_for(milliseconds(5));
  }
  MUST(stuck.state() == ncclRemoteError);
  stuck.stream.synchronize();
  MUST(ncclCommAbort(stuck.comm));
}

/// Exits while a call of onehop waits.
SCENARIO(leave_stuck) {
  [[maybe_unused]] static Stuck* volatile held = nullptr;  // else it were a leak
  held = new Stuck(self);
  self.meet("leaving");
}

/// A rank is lost; the others shrink with NCCL_SHRINK_ABORT and go on.
SCENARIO(shrink_abort) {
  Stuck stuck(self);
  if (self.rank == 0) {
    MUST(ncclCommAbort(stuck.comm));
    self.wait_for("shrunk.1");
    return;
  }
  int lost = 0;
  ncclComm_t child = nullptr;
  const auto since = Clock::now();
  MUST(ncclCommShrink(stuck.comm, &lost, 1, &child, nullptr, NCCL_SHRINK_ABORT));
  stuck.stream.synchronize();
  must_be_quick(since);
  stuck.data.fill(1);
  MUST(sum(stuck.data, stuck.data, child, stuck.stream));
  stuck.stream.synchronize();
  must(stuck.data.holds(static_cast<uint32_t>(self.ranks - 1)), "wrong sum of the child");
  self.expect("taken");
  self.say("shrunk." + std::to_string(self.rank));
  MUST(ncclCommDestroy(child));
  MUST(ncclCommAbort(stuck.comm));
}

/// ONEHOP_TIMEOUT_S=1, and rank 0 never comes: an asynchronous error that names it; later calls fail.
SCENARIO(timeout) {
  Stuck stuck(self);
  if (self.rank == 0) {
    self.wait_for("timed out.1");
    MUST(stuck.state());
    MUST(ncclCommAbort(stuck.comm));
    return;
  }
  const auto since = Clock::now();
  while (stuck.state() == ncclSuccess) {
    must(Clock::now() - since < std::chrono::seconds(10 * kPatience), "no asynchronous error");
    std::this_thread::sleep_for(milliseconds(5));
  }
  MUST(stuck.state() == ncclRemoteError);
  stuck.stream.synchronize();
  const Loaded loaded;
  const onehopCommStatus status = loaded.status(stuck.comm);
  must(status.state == onehopFailed && std::strstr(status.reason, "rank 0") != nullptr &&
           std::strstr(status.reason, "ONEHOP_TIMEOUT_S=1") != nullptr,
       std::string("the reason is: ") + status.reason);
  MUST(sum(stuck.data, stuck.data, stuck.comm, stuck.stream) == ncclRemoteError);
  MUST(ncclGroupStart());
  MUST(sum(stuck.data, stuck.data, stuck.comm, stuck.stream));
  MUST(ncclGroupEnd() == ncclRemoteError);
  self.say("timed out." + std::to_string(self.rank));
  if (self.argument == "destroy")
    MUST(ncclCommDestroy(stuck.comm));
  else
    MUST(ncclCommAbort(stuck.comm));
}

}  // namespace onehop::node
