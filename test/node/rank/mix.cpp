// Traffic of every kind, drawn from a seed that all ranks share, until it is told to stop or a rank is lost:
// what a job does when one of its processes is killed.
#include "test/node/rank/mix.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

constexpr size_t kComms = 3, kBuffers = 12, kCount = 500, kPassed = 20000;

/// On SIGTERM a thread of its own calls exit(), wherever the others are, as frameworks do.
void exit_on_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] {
    int signal = 0;
    sigwait(&set, &signal);
    std::exit(128 + SIGTERM);
  }).detach();
}

/// The page that the test looks at.
std::atomic<int32_t>& shown(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  MUST(file >= 0 && ftruncate(file, sizeof(int32_t)) == 0);
  void* page = mmap(nullptr, sizeof(int32_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MUST(page != MAP_FAILED);
  close(file);
  return *static_cast<std::atomic<int32_t>*>(page);
}

class Mix {
 public:
  Mix(Rank& self, uint32_t seed, std::atomic<int32_t>& where) : self_(self), random_(seed), where_(where) {
    large_ = std::make_unique<Words>(kPassed);
    open();
    ncclComm_t world = nullptr;
    may_fail(ncclCommInitRank(&world, self.ranks, self.id("world"), self.rank));
    comms_[0] = world;
    loaded_.emplace();  // only now: NCCL loads it for the first communicator
  }

  void round() {
    const size_t chosen = random_() % kComms;
    if (comms_[chosen] == nullptr) return split(chosen);
    const uint32_t what = random_() % 8;
    const ncclComm_t comm = comms_[chosen];
    switch (what) {
      case 0:  // eager, on two streams by turns
        for (size_t i = 0; i < 8; ++i) call(chosen, i, i % 3 == 0 ? *other_ : *stream_);
        wait(chosen, 8);
        break;
      case 1: {  // captured, and the first call of a communicator may be among them
        const size_t calls = 1 + random_() % 6, replays = 1 + random_() % 4;
        const Graph graph(*stream_, [&] {
          for (size_t i = 0; i < calls; ++i) call(chosen, i, *stream_);
        });
        const bool mixed = nccl_has_a_part();
        for (size_t replay = 0; replay < replays; ++replay) {
          passed_ |= mixed;
          graph.launch(*stream_);
          wait(chosen, calls);
        }
        break;
      }
      case 2:  // a group over all communicators
        may_fail(ncclGroupStart());
        for (size_t c = 0; c < kComms; ++c)
          if (comms_[c] != nullptr) call(c, 0, *stream_);
        may_fail(ncclGroupEnd());
        for (size_t c = 0; c < kComms; ++c)
          if (comms_[c] != nullptr) wait(c, 1);
        break;
      case 3:  // passed
        passed_ = true;
        large_->fill(1);
        may_fail(sum(*large_, *large_, comm, *stream_));
        await();
        must(large_->holds(static_cast<uint32_t>(self_.ranks)), "a wrong sum of a passed call");
        break;
      case 4: {  // a group with messages
        passed_ = true;
        const int next = (self_.rank + 1) % self_.ranks,
                  before = (self_.rank + self_.ranks - 1) % self_.ranks;
        may_fail(ncclGroupStart());
        may_fail(ncclSend(large_->data(), 100, ncclUint32, next, comm, *stream_));
        call(chosen, 0, *stream_);
        may_fail(ncclRecv(large_->data() + 200, 100, ncclUint32, before, comm, *stream_));
        may_fail(ncclGroupEnd());
        wait(chosen, 1);
        break;
      }
      case 5:
        if (chosen == 0) return;  // the parent of the others
        may_fail(ncclCommDestroy(comm));
        comms_[chosen] = nullptr;
        used_[chosen] = false;
        break;
      default:
        for (size_t i = 0; i < kBuffers; ++i) call(chosen, i, *stream_);
        wait(chosen, kBuffers);
    }
  }

  void finish() {
    for (size_t c = kComms; c-- > 0;)
      if (comms_[c] != nullptr) MUST(ncclCommDestroy(comms_[c]));
  }

 private:
  void open() {
    stream_ = std::make_unique<Stream>();
    other_ = std::make_unique<Stream>();
    for (size_t c = 0; c < kComms; ++c)
      for (size_t i = 0; i < kBuffers; ++i) {
        from_[c].push_back(std::make_unique<Words>(kCount, static_cast<uint32_t>(self_.rank + 1 + i)));
        to_[c].push_back(std::make_unique<Words>(kCount, 0));
      }
  }

  void split(size_t chosen) { may_fail(ncclCommSplit(comms_[0], 0, self_.rank, &comms_[chosen], nullptr)); }

  void call(size_t c, size_t i, cudaStream_t stream) {
    passed_ |= !used_[c];
    used_[c] = true;
    may_fail(sum(*from_[c][i], *to_[c][i], comms_[c], stream));
  }

  /// For `calls` calls, which are then right.
  void wait(size_t c, size_t calls) {
    await();
    const auto n = static_cast<uint32_t>(self_.ranks);
    for (size_t i = 0; i < calls; ++i) {
      must(to_[c][i]->holds(n * (n + 1) / 2 + n * static_cast<uint32_t>(i)), "a wrong sum");
      to_[c][i]->fill(0);
    }
  }

  /// Looks at its communicators meanwhile, as a watchdog does. What it shows: whether only onehop is waited
  /// for.
  void await() {
    passed_ |= nccl_has_a_part();
    where_ = passed_ ? kElsewhere : kInOnehop;
    for (const Stream* stream : {stream_.get(), other_.get()}) {
      cudaError_t state;
      while ((state = cudaStreamQuery(*stream)) == cudaErrorNotReady) {
        look_for_errors();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      MUST(state);
    }
    look_for_errors();
    where_ = kElsewhere;
    passed_ = false;
  }

  /// Whether a call was passed since it was asked last: a plan may leave sizes to NCCL.
  bool nccl_has_a_part() {
    const uint64_t before = std::exchange(passes_, loaded_->statistics().passed);
    return before != passes_;
  }

  void look_for_errors() {
    for (const ncclComm_t comm : comms_) {
      ncclResult_t state = ncclSuccess;
      if (comm == nullptr) continue;
      MUST(ncclCommGetAsyncError(comm, &state));
      if (state != ncclSuccess) lost();
    }
  }

  /// A call may find that a rank is lost.
  void may_fail(ncclResult_t result) {
    if (result != ncclSuccess) lost();
  }

  /// As a framework ends a job: aborts everything, and leaves with a code.
  [[noreturn]] void lost() {
    where_ = kInOnehop;  // and nothing but onehop and abort may hold it up
    for (const ncclComm_t comm : comms_)
      if (comm != nullptr) MUST(ncclCommAbort(comm));
    std::exit(kLost);
  }

  Rank& self_;
  std::mt19937 random_;
  std::atomic<int32_t>& where_;
  std::unique_ptr<Stream> stream_, other_;
  std::vector<std::unique_ptr<Words>> from_[kComms], to_[kComms];
  std::unique_ptr<Words> large_;
  ncclComm_t comms_[kComms] = {};
  bool used_[kComms] = {};
  bool passed_ = false;  ///< NCCL has a part in what is waited for
  std::optional<Loaded> loaded_;
  uint64_t passes_ = 0;  ///< as counted by onehop
};

}  // namespace

/// Argument: "SEED ROUNDS HOW", HOW is what SIGTERM does: "dies" or "exits".
SCENARIO(mix) {
  std::istringstream words(self.argument);
  uint32_t seed = 0, rounds = 0;
  std::string how;
  words >> seed >> rounds >> how;
  std::atomic<int32_t>& where = shown("where." + std::to_string(self.rank));
  if (how == "exits") exit_on_sigterm();
  static Mix* mix = new Mix(self, seed, where);  // exit() must not wait for its streams
  for (uint32_t round = 0; round < rounds; ++round) mix->round();
  mix->finish();
}

}  // namespace onehop::node
