// Ranks in processes of their own, on one GPU or several, with staging memory shared by CUDA IPC or in host
// memory. Without MPS the driver gives the GPU to one process at a time, so a call takes milliseconds; every
// wait has a deadline.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "test/gpu/local_ranks.hpp"
#include "test/gpu/names.hpp"
#include "test/gpu/reference.hpp"

namespace onehop::test {
namespace {

constexpr size_t kLargest = 64 << 10;  ///< bytes of a call; more than one operation of some methods
constexpr unsigned kDeadlineSeconds = 120;

/// Shared by the processes of one test.
struct Board {
  std::atomic<int> arrived[3];
  StagingAddress address[kMaxRanks];

  void meet(int place, int ranks) {
    ++arrived[place];
    while (arrived[place] < ranks) std::this_thread::yield();
  }
};

#define MUST(condition)                                                                      \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "rank %d: %s failed (line %d)\n", number_, #condition, __LINE__); \
      _exit(1);                                                                              \
    }                                                                                        \
  } while (false)

/// A rank that is a process.
class ProcessRank {
 public:
  ProcessRank(int rank, int ranks, StagingKind kind, Board& board) : number_(rank), ranks_(ranks) {
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices) == cudaSuccess);
    me_.device = rank % devices;
    me_.max_blocks = blocks_alone(static_cast<uint32_t>((ranks + devices - 1) / devices), me_.device);
    Device& device = *cuda_device();
    MUST(device.set_current(me_.device));
    MUST(device.load_kernels());
    MUST(cudaStreamCreateWithFlags(&me_.stream, cudaStreamNonBlocking) == cudaSuccess);
    const Layout layout{static_cast<uint32_t>(ranks), 4096, 4096};
    me_.staging =
        std::make_unique<Staging>(device, static_cast<uint32_t>(rank), kind, layout, 30'000'000'000ull);
    MUST(me_.staging->allocate(me_.stream));
    me_.staging->view().islands = equal_islands(static_cast<uint32_t>(ranks), 2);
    MUST(me_.order.open(device, true));
    MUST(cudaStreamSynchronize(me_.stream) == cudaSuccess);
    const auto process = static_cast<uint64_t>(getpid());
    const Result<StagingAddress> address = me_.staging->address(process, me_.device, true);
    MUST(address);
    board.address[rank] = *address;
    board.meet(0, ranks);
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank)
        MUST(me_.staging->map(static_cast<uint32_t>(peer), board.address[peer], process, me_.device));
    board.meet(1, ranks);
    me_.staging->close_name();
    MUST(cudaMalloc(reinterpret_cast<void**>(&send_), kLargest) == cudaSuccess);
    MUST(cudaMalloc(reinterpret_cast<void**>(&receive_), kLargest) == cudaSuccess);
    output_.resize(kLargest);
  }

  bool serves(Method method) const { return me_.limit(method, Element::kBfloat16) != 0; }

  void call(Method method, Element element, size_t count, uint64_t seed) {
    std::vector<std::vector<unsigned char>> data;
    std::vector<const unsigned char*> inputs;
    for (int r = 0; r < ranks_; ++r)
      data.push_back(random_bytes(kLargest, seed * 16 + static_cast<uint64_t>(r)));
    for (const auto& d : data) inputs.push_back(d.data());
    MUST(cudaMemcpyAsync(send_, inputs[static_cast<size_t>(number_)], kLargest, cudaMemcpyHostToDevice,
                         me_.stream) == cudaSuccess);
    MUST(cudaMemsetAsync(receive_, 0xA5, kLargest, me_.stream) == cudaSuccess);
    me_.all_reduce({send_, receive_, count, element, Reduction::kSum, method});
    MUST(!testing::Test::HasFailure());
    MUST(cudaMemsetAsync(send_, 0x5A, kLargest, me_.stream) == cudaSuccess);
    MUST(cudaMemcpyAsync(output_.data(), receive_, kLargest, cudaMemcpyDeviceToHost, me_.stream) ==
         cudaSuccess);
    MUST(cudaStreamSynchronize(me_.stream) == cudaSuccess);
    MUST(!me_.stopped());
    const size_t size = element_size(element);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t want = expected(element, Reduction::kSum, inputs, i),
                     got = element_at(output_.data(), size, i);
      MUST(want == got || (is_nan(element, want) && is_nan(element, got)));
    }
    for (size_t i = count * size; i < kLargest; ++i) MUST(output_[i] == 0xA5);
  }

 private:
  const int number_, ranks_;
  Rank me_;
  unsigned char *send_ = nullptr, *receive_ = nullptr;
  std::vector<unsigned char> output_;
};

void run_rank(int rank, int ranks, StagingKind kind, Board& board) {
  alarm(kDeadlineSeconds);
  {
    ProcessRank me(rank, ranks, kind, board);
    uint64_t seed = 0;
    // Round by round, so that each method follows each other.
    for (int round = 0; round < 2; ++round) {
      for (uint32_t m = 0; m < kMethods; ++m) {
        const auto method = static_cast<Method>(m);
        if (!me.serves(method) || (kind == StagingKind::kHost && !is_pull(method))) continue;
        for (const Element element :
             {Element::kBfloat16, round == 0 ? Element::kInt64 : Element::kFloat8e4m3})
          for (const size_t bytes : {size_t{8}, size_t{1000}, round == 0 ? kLargest : 20 * 1000})
            me.call(method, element, bytes / element_size(element), ++seed);
      }
    }
    board.meet(2, ranks);
  }
  _exit(0);
}

class Processes : public testing::TestWithParam<std::tuple<int, StagingKind>> {};

TEST_P(Processes, ReduceRightWithEveryMethodInTurn) {
  const auto [ranks, kind] = GetParam();
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(board, MAP_FAILED);
  new (board) Board{};
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) run_rank(rank, ranks, kind, *board);
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

std::string test_name(const testing::TestParamInfo<std::tuple<int, StagingKind>>& info) {
  return std::to_string(std::get<0>(info.param)) + "Ranks" + word_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, Processes,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(StagingKind::kPeer, StagingKind::kHost)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Islands, Processes,
                         testing::Combine(testing::Values(9), testing::Values(StagingKind::kPeer)),
                         test_name);

}  // namespace
}  // namespace onehop::test
