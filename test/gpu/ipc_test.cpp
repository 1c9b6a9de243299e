// Ranks in processes of their own, on one GPU or several, with staging memory shared by CUDA IPC. Without MPS
// the driver gives the GPU to one process at a time, so a call takes milliseconds; every wait has a deadline.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "test/gpu/local_ranks.hpp"
#include "test/gpu/reference.hpp"

namespace onehop::test {
namespace {

constexpr size_t kLimit = 64 << 10;
constexpr int kCalls = 60;
constexpr unsigned kDeadlineSeconds = 120;

/// Shared by the processes of one test.
struct Board {
  std::atomic<int> arrived[3];
  InboxAddress address[kMaxRanks];

  void meet(int place, int ranks) {
    ++arrived[place];
    while (arrived[place] < ranks) std::this_thread::yield();
  }
};

#define MUST(condition)                                                                   \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "rank %d: %s failed (line %d)\n", rank, #condition, __LINE__); \
      _exit(1);                                                                           \
    }                                                                                     \
  } while (false)

void run_rank(int rank, int ranks, Element element, Board& board) {
  alarm(kDeadlineSeconds);
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices) == cudaSuccess);
  const int device_index = rank % devices;
  Device& device = *cuda_device();
  MUST(device.set_current(device_index));
  MUST(device.load_kernels());
  Rank me;
  me.device = device_index;
  MUST(cudaStreamCreateWithFlags(&me.stream, cudaStreamNonBlocking) == cudaSuccess);
  const InboxLayout layout{static_cast<uint32_t>(ranks), kLimit / sizeof(Pack)};
  me.staging = std::make_unique<Staging>(device, static_cast<uint32_t>(rank), layout, 30'000'000'000ull);
  MUST(me.staging->allocate(me.stream));
  MUST(me.order.open(device, true));
  MUST(cudaStreamSynchronize(me.stream) == cudaSuccess);
  const auto process = static_cast<uint64_t>(getpid());
  const Result<InboxAddress> address = me.staging->address(process, device_index, true);
  MUST(address);
  board.address[rank] = *address;
  board.meet(0, ranks);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != rank)
      MUST(me.staging->map(static_cast<uint32_t>(peer), board.address[peer], process, device_index));
  board.meet(1, ranks);

  const size_t size = element_size(element);
  unsigned char *send = nullptr, *receive = nullptr;
  MUST(cudaMalloc(reinterpret_cast<void**>(&send), kLimit) == cudaSuccess);
  MUST(cudaMalloc(reinterpret_cast<void**>(&receive), kLimit) == cudaSuccess);
  std::vector<unsigned char> output(kLimit);
  for (int call = 0; call < kCalls; ++call) {
    const size_t count =
        std::min(kLimit / size, call % 7 == 6 ? kLimit : static_cast<size_t>(1 + call * call * 3));
    std::vector<std::vector<unsigned char>> data;
    std::vector<const unsigned char*> inputs;
    for (int r = 0; r < ranks; ++r)
      data.push_back(random_bytes(kLimit, static_cast<uint64_t>(call * 16 + r)));
    for (const auto& d : data) inputs.push_back(d.data());
    MUST(cudaMemcpyAsync(send, data[rank].data(), kLimit, cudaMemcpyHostToDevice, me.stream) == cudaSuccess);
    MUST(cudaMemsetAsync(receive, 0xA5, kLimit, me.stream) == cudaSuccess);
    me.all_reduce({send, receive, count, element});
    MUST(cudaMemsetAsync(send, 0x5A, kLimit, me.stream) == cudaSuccess);
    MUST(cudaMemcpyAsync(output.data(), receive, kLimit, cudaMemcpyDeviceToHost, me.stream) == cudaSuccess);
    MUST(cudaStreamSynchronize(me.stream) == cudaSuccess);
    MUST(me.staging->view().control->stop == 0);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t want = expected(element, Reduction::kSum, inputs, i),
                     got = element_at(output.data(), size, i);
      MUST(want == got || (is_nan(element, want) && is_nan(element, got)));
    }
  }
  board.meet(2, ranks);
  _exit(0);
}

class Processes : public testing::TestWithParam<std::tuple<int, Element>> {};

TEST_P(Processes, ReduceRight) {
  const auto [ranks, element] = GetParam();
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(board, MAP_FAILED);
  new (board) Board{};
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) run_rank(rank, ranks, element, *board);
    children.push_back(child);
  }
  bool failed = false;
  for (size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    waitpid(-1, &status, 0);
    if (status == 0 || failed) continue;
    failed = true;
    ADD_FAILURE() << "a rank ended with status " << status;
    for (const pid_t child : children) kill(child, SIGKILL);
  }
  munmap(board, sizeof(Board));
}

INSTANTIATE_TEST_SUITE_P(All, Processes,
                         testing::Values(std::tuple(2, Element::kBfloat16), std::tuple(2, Element::kInt64),
                                         std::tuple(3, Element::kFloat32), std::tuple(4, Element::kFloat16),
                                         std::tuple(8, Element::kBfloat16)));

}  // namespace
}  // namespace onehop::test
