// Ranks that die, give up or come late while the others wait for them in a call that onehop took.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "test/gpu/life/rank.hpp"

namespace onehop::test {
namespace {

/// Of these jobs ONEHOP_TIMEOUT_S is 5 at most; processes on one GPU are time-sliced, and others use it too.
constexpr double kBudget = 5 + 10;
constexpr double kAtOnce = 1, kSoon = 3;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A communicator that is set up, with a first call that was right.
struct Ready {
  explicit Ready(Rank& self) : checked(self, 64 << 10), comm(self.join()) {
    self.step("sets up");
    checked.all_reduce({.count = 1000, .seed = 1}, comm, self.ranks, stream);
    stream.synchronize();
    checked.verify("the first call");
    if (LoadedOnehop onehop; onehop.found())
      must(onehop.statistics().taken == 1, "the first call was not taken");
    MUST(cudaMalloc(reinterpret_cast<void**>(&data), 4096));
    MUST(cudaMemset(data, 0, 4096));
    MUST(cudaDeviceSynchronize());
    self.meet();
  }
  ncclResult_t call() { return ncclAllReduce(data, data, 1000, ncclFloat32, ncclSum, comm, stream); }
  Stream stream;
  Checked checked;
  float* data = nullptr;
  ncclComm_t comm;
};

/// After the end of a communicator the GPU has nothing left to do, and no error is left behind.
void must_be_idle(const Ready& ready) {
  wait_idle(ready.stream, kSoon, "the stream of an aborted communicator");
  const Stream other;
  MUST(cudaMemsetAsync(ready.data, 0, 4096, other));
  wait_idle(other, kSoon, "work after an abort");
  must(cudaGetLastError(), "an error is left");
}

/// Calls, a few ahead of the GPU, until one fails or the communicator does.
void call_until_failure(Rank& self, Ready& ready) {
  const double since = now_s();
  for (unsigned calls = 0;; ++calls) {
    if (now_s() - since > 3 * kBudget) fail("no failure came");
    if (ready.call() != ncclSuccess) return;
    if (calls % 8 != 0) continue;
    for (;;) {
      const cudaError_t state = cudaStreamQuery(ready.stream);
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) must(state, "cudaStreamQuery while a peer is gone");
      (void)cudaGetLastError();
      if (async_error(ready.comm) != ncclSuccess) return;
      if (now_s() - since > 3 * kBudget) fail("waiting kernels saw no end");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    self.step("call " + std::to_string(calls));
  }
}

}  // namespace

/// One rank (the argument) is killed while all call.
CASE(killed) {
  Ready ready(self);
  if (self.rank == std::stoi(self.argument))
    std::thread([&] {
      sleep_s(0.7);
      self.shared.killed_at_us = now_us();
      kill(getpid(), SIGKILL);
    }).detach();
  call_until_failure(self, ready);
  const auto since_kill = [&] {
    return 1e-6 * (static_cast<double>(now_us()) - static_cast<double>(self.shared.killed_at_us.load()));
  };
  must(self.shared.killed_at_us != 0, "a failure before anyone was killed");
  self.step("saw the failure");
  self.figure("failure seen after kill, s", since_kill());
  wait_idle(ready.stream, kBudget, "the kernels of a survivor");
  self.figure("kernels gone after kill, s", since_kill());
  must(since_kill() < kBudget, "the survivors' kernels did not end in time");
  must(async_error(ready.comm) != ncclSuccess, "no asynchronous error");
  must(ready.call() != ncclSuccess, "a call after the failure was accepted");
  self.step("aborts");
  const double since = now_s();
  MUST(ncclCommAbort(ready.comm));
  self.figure("abort, s", now_s() - since);
  must_be_idle(ready);
  self.step("waits for SIGTERM");
  self.wait_for_signal();
}

/// The last rank stays out. Rank 0 aborts and is free; rank 1 stays until its timeout, the others until they
/// abort. The next communicator works.
CASE(abort_one) {
  Ready ready(self);
  const bool out = self.rank == self.ranks - 1;
  if (!out) {
    for (int i = 0; i < 2; ++i) MUST(ready.call());
    sleep_s(0.3);
    must(cudaStreamQuery(ready.stream) == cudaErrorNotReady, "a call did not wait for the last rank");
    (void)cudaGetLastError();
  }
  self.meet();
  const double since = now_s();
  if (self.rank == 1 && !out) {
    wait_until("the asynchronous error", kBudget, [&] { return async_error(ready.comm) != ncclSuccess; });
    self.figure("timeout, s", now_s() - since);
  } else if (self.rank != 0) {
    sleep_s(0.5);
    if (!out) must(cudaStreamQuery(ready.stream) == cudaErrorNotReady, "a call left before its rank aborted");
    (void)cudaGetLastError();
  }
  self.step("aborts");
  const double begin = now_s();
  // The abort itself is NCCL's too: the kernels must be gone however long that takes.
  double gone = 0;
  std::thread watcher([&] {
    MUST(cudaSetDevice(self.device));
    gone = wait_idle(ready.stream, kBudget, "the kernels of an aborted rank");
  });
  MUST(ncclCommAbort(ready.comm));
  const double took = now_s() - begin;
  watcher.join();
  self.figure("abort, s", took);
  self.figure("kernels gone after abort, s", gone);
  must(gone < kAtOnce, "kernels stayed after ncclCommAbort: " + std::to_string(gone) + " s");
  must(took < kSoon, "ncclCommAbort took " + std::to_string(took) + " s");
  must_be_idle(ready);
  self.meet();
  self.step("the next communicator");
  ready.comm = self.join();
  ready.checked.all_reduce({.count = 1000, .seed = 2}, ready.comm, self.ranks, ready.stream);
  wait_idle(ready.stream, kBudget);
  ready.checked.verify("the next communicator");
  self.meet();
  MUST(ncclCommDestroy(ready.comm));
}

/// The last rank comes late by the seconds of the argument: nothing happens but that.
CASE(late) {
  Ready ready(self);
  const double seconds = std::stod(self.argument);
  for (uint32_t i = 2; i < 5; ++i) {
    if (self.rank == self.ranks - 1 && i == 3) sleep_s(seconds);
    self.step("call " + std::to_string(i));
    ready.checked.all_reduce({.count = 5000, .seed = i}, ready.comm, self.ranks, ready.stream);
  }
  wait_idle(ready.stream, seconds + 60, "the late rank");
  ready.checked.verify("a late call");
  must(async_error(ready.comm) == ncclSuccess, "an asynchronous error because a rank was late");
  self.meet();
  MUST(ncclCommDestroy(ready.comm));
}

// How processes end.

/// Returns from main() with a communicator, a graph and streams that live.
CASE(exit_without_destroy) {
  auto& ready = *new Ready(self);
  auto& graph = *new Graph(ready.stream, [&] { MUST(ready.call()); });
  self.meet();
  graph.launch(ready.stream);
  ready.stream.synchronize();
  self.meet();
  self.leaves();
}

/// Exits while its own call waits for a rank that exits as well, without it.
CASE(exit_while_waiting) {
  auto& ready = *new Ready(self);
  if (self.rank != 0) {
    MUST(ready.call());
    sleep_s(0.3);
    must(cudaStreamQuery(ready.stream) == cudaErrorNotReady, "the call did not wait");
  }
  self.meet();
  self.leaves();
  std::exit(0);
}

/// A handler of SIGTERM that calls exit(), as launchers and servers have it.
CASE(exit_in_handler) {
  new Ready(self);
  static Shared::Process* mine = &self.shared.processes[self.process];
  signal(SIGTERM, [](int) {
    mine->leaves_at_us = now_us();
    std::exit(0);
  });
  self.wait_for_signal();
}

/// Children that use nothing, and end by _exit() or by exit(); the parent does not notice. (What exit() finds
/// in such a child is CUDA's and NCCL's too, so how it ends is only told. From NCCL 2.29 on it also ends the
/// RAS thread of the parent, whose own exit() then aborts: NCCL_RAS_ENABLE=0, see docs/limits.md.)
CASE(fork_child) {
  Ready ready(self);
  for (uint32_t round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      if (round == 2) std::exit(42);
      _exit(42);
    }
    int status = 0;
    wait_until("the forked child", 25, [&] { return waitpid(child, &status, WNOHANG) == child; });
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 42;
    must(well || round == 2, "the forked child ended badly");
    if (round == 2) self.figure("a child's exit() works", well ? 1 : 0);
    ready.checked.all_reduce({.count = 1000, .seed = 10 + round}, ready.comm, self.ranks, ready.stream);
    wait_idle(ready.stream, 30);
  }
  ready.checked.verify("after a fork");
  self.meet();
  MUST(ncclCommDestroy(ready.comm));
  self.leaves();
}

}  // namespace onehop::test
