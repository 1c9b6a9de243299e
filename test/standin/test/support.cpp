#include "test/standin/test/support.hpp"

#include <unistd.h>

namespace onehop::standin {
namespace {

// A test that hangs ends the program: no test here takes more than a few seconds.
[[maybe_unused]] const unsigned kDeadline = alarm(110);

}  // namespace

void Gate::close_on(cudaStream_t stream) {
  auto* state = new std::shared_ptr<State>(state_);
  const auto wait = [](void* data) {
    const auto* held = static_cast<std::shared_ptr<State>*>(data);
    std::unique_lock lock((*held)->mutex);
    (*held)->changed.wait(lock, [&] { return (*held)->open; });
    lock.unlock();
    delete held;
  };
  EXPECT_CUDA(cudaLaunchHostFunc(stream, wait, state));
}

void Gate::open() {
  const std::lock_guard guard(state_->mutex);
  state_->open = true;
  state_->changed.notify_all();
}

void run_ranks(int ranks, const std::function<void(int)>& rank) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      EXPECT_CUDA(cudaSetDevice(r));
      rank(r);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void with_communicator(int ranks, const std::function<void(int, ncclComm_t)>& rank) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(ranks, [&](int r) {
    ncclComm_t comm = nullptr;
    ASSERT_NCCL(ncclCommInitRank(&comm, ranks, id, r));
    rank(r, comm);
    EXPECT_NCCL(ncclCommDestroy(comm));
  });
}

cudaGraphExec_t capture(cudaStream_t stream, const std::function<void()>& work, cudaStreamCaptureMode mode) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA(cudaStreamBeginCapture(stream, mode));
  work();
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  return executable;
}

}  // namespace onehop::standin
