// Communicators that come and go.
#include <dirent.h>
#include <malloc.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

size_t entries(const char* folder) {
  size_t count = 0;
  DIR* open = opendir(folder);
  MUST(open != nullptr);
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

/// What a communicator must give back.
struct Held {
  size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task"), mappings = 0;
  size_t heap = mallinfo2().uordblks;  ///< of the main thread, where communicators are made
  Held() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++mappings;
  }
};

/// Sums a few times and checks.
void use(const Rank& self, ncclComm_t comm, int ranks, cudaStream_t stream) {
  for (uint32_t i = 1; i <= 2; ++i) {
    const Words data(64, i * static_cast<uint32_t>(self.rank + 1));
    MUST(sum(data, data, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    const auto n = static_cast<uint32_t>(ranks);
    const uint32_t expected = ranks == 1 ? i * static_cast<uint32_t>(self.rank + 1) : i * n * (n + 1) / 2;
    must(data.holds(expected), "wrong sum of a communicator of " + std::to_string(ranks));
  }
}

void check_status(ncclComm_t comm, onehopState state, uint64_t taken, uint64_t passed) {
  const Loaded loaded;
  if (!loaded.found()) return;
  const onehopCommStatus status = loaded.status(comm);
  must(status.state == state && status.taken == taken && status.passed == passed,
       "the state is " + std::to_string(status.state) + " with " + std::to_string(status.taken) +
           " taken and " + std::to_string(status.passed) + " passed");
}

}  // namespace

/// Many communicators, one after another, of all ranks and of this rank alone in turn: NCCL uses their
/// addresses again, and what onehop knows of the old one must not be taken for the new one's. Argument: how
/// many, and "declined" if those of all ranks are.
SCENARIO(come_and_go) {
  const ncclComm_t parent = self.join();
  const Stream stream;
  std::set<ncclComm_t> addresses;
  const int rounds = std::stoi(self.argument);
  const bool declined = self.argument.find("declined") != std::string::npos;
  std::unique_ptr<Held> early;
  for (int round = 0; round < rounds; ++round) {
    const bool alone = round % 3 == 1;
    ncclComm_t comm = nullptr;
    MUST(ncclCommSplit(parent, alone ? self.rank : 0, self.rank, &comm, nullptr));
    addresses.insert(comm);
    check_status(comm, onehopUnknown, 0, 0);
    use(self, comm, alone ? 1 : self.ranks, stream);
    const bool off = alone || declined;
    check_status(comm, off ? onehopOff : onehopOn, off ? 0 : 2, off ? 2 : 0);
    self.expect(off ? "declined" : "taken", 2);
    MUST(ncclCommDestroy(comm));
    check_status(comm, onehopUnknown, 0, 0);
    MUST(cudaPeekAtLastError());
    if (round == 20) early = std::make_unique<Held>();
  }
  must(addresses.size() < 5, "the stand-in does not use addresses again");
  Held late;
  // The thread of a stream ends a moment after the stream.
  for (int tries = 0; late.threads > early->threads && tries < 200; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    late = Held();
  }
  must(late.descriptors == early->descriptors,
       "descriptors: " + std::to_string(early->descriptors) + ", then " + std::to_string(late.descriptors));
  must(late.threads <= early->threads, "threads are left");
  // Less than 100 bytes for each communicator, beside what comes and goes.
  must(late.heap < early->heap + 4096 + 100 * static_cast<size_t>(rounds - 20),
       "the heap grew by " + std::to_string(late.heap - early->heap) + " bytes");
  // The allocator may have grown by a few.
  must(late.mappings < early->mappings + 20,
       "mappings: " + std::to_string(early->mappings) + ", then " + std::to_string(late.mappings));
  MUST(ncclCommDestroy(parent));
}

/// A rank that is late is not in the time that onehop says its set-up took: the others met it.
SCENARIO(late_rank) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  // Nobody's rest begins before all are here.
  std::vector<char> here(static_cast<size_t>(self.ranks));
  MUST(ncclAllGather(&here[static_cast<size_t>(self.rank)], here.data(), 1, ncclInt8, comm, stream));
  MUST(cudaStreamSynchronize(stream));
  constexpr std::chrono::seconds kLate{2};
  const auto start = std::chrono::steady_clock::now();
  if (self.rank == 1) std::this_thread::sleep_for(kLate);
  use(self, comm, self.ranks, stream);
  const auto call = std::chrono::steady_clock::now() - start;
  self.expect("taken", 2);
  const onehopCommStatus status = Loaded().status(comm);
  const std::chrono::nanoseconds meeting(status.meeting_ns), set_up(status.set_up_ns);
  must(status.set_up_ns > 0 && meeting + set_up <= call, "the parts are longer than the whole");
  // Half of it, for this rank may be late, too.
  must(self.rank == 1 || meeting > kLate / 2, "the late rank is not in the meeting");
  must(status.staging_bytes > 0, "no staging");
  MUST(ncclCommDestroy(comm));
}

/// Children of Split and Shrink are communicators of their own, with their own verdict.
SCENARIO(family) {
  const ncclComm_t parent = self.join();
  const Stream stream;
  use(self, parent, self.ranks, stream);
  // All but the last rank; the last is alone.
  const bool last = self.rank == self.ranks - 1;
  const int members = last ? 1 : self.ranks - 1;
  ncclComm_t child = nullptr;
  MUST(ncclCommSplit(parent, last ? 1 : 0, self.rank, &child, nullptr));
  use(self, child, members, stream);
  check_status(child, last ? onehopOff : onehopOn, last ? 0 : 2, last ? 2 : 0);
  self.expect("taken", 2);
  self.expect(last ? "declined" : "taken", 2);
  if (!last) {
    int excluded = self.ranks - 1;
    ncclComm_t smaller = nullptr;
    MUST(ncclCommShrink(parent, &excluded, 1, &smaller, nullptr, NCCL_SHRINK_DEFAULT));
    check_status(smaller, onehopUnknown, 0, 0);
    use(self, smaller, members, stream);
    check_status(smaller, onehopOn, 2, 0);
    self.expect("taken", 2);
    MUST(ncclCommDestroy(smaller));
  }
  MUST(ncclCommDestroy(child));
  use(self, parent, self.ranks, stream);
  self.expect("taken", 2);
  MUST(ncclCommDestroy(parent));
}

/// Finalize waits for what was enqueued, and ends the taking of calls.
SCENARIO(finalize) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  use(self, comm, self.ranks, stream);
  const Words from(64, 1), to(64, 0);
  Gate gate;
  gate.close_on(stream);
  MUST(sum(from, to, comm, stream));
  std::thread opener([&gate] { gate.open(); });
  MUST(ncclCommFinalize(comm));
  must(to.holds(static_cast<uint32_t>(self.ranks)),
       "ncclCommFinalize returned before the last call was done");
  opener.join();
  check_status(comm, onehopOff, 3, 0);
  self.expect("taken", 3);
  MUST(ncclCommDestroy(comm));
}

/// After set-up no descriptor of this process leads to staging memory, and what it shares with others has no
/// name. Argument: "killed" ends it there.
SCENARIO(names) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    use(self, comm, self.ranks, stream);
    self.expect("taken", 2);
    size_t mapped = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const bool shared = line.find(' ') != std::string::npos && line[line.find(' ') + 4] == 's';
      must(!shared || line.find(" /memfd:") != std::string::npos, "shared memory with a name: " + line);
      mapped += line.find(" /memfd:onehop (deleted)") != std::string::npos;
    }
    must(mapped == static_cast<size_t>(self.ranks), std::to_string(mapped) + " pieces of staging memory");
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      const std::string target = std::filesystem::read_symlink(entry, none);
      must(target.rfind("/memfd:onehop (", 0) != 0 && target.rfind("/dev/shm/", 0) != 0,
           "a descriptor of " + target + " stays open");
    }
    self.meet("looked");
    if (self.argument == "killed") raise(SIGKILL);
  }
  MUST(ncclCommDestroy(comm));
}

/// Exits with communicators that live, from main() or from exit().
SCENARIO(leave) {
  const ncclComm_t comm = self.join();
  static const Stream* volatile held = nullptr;  // else it were a leak
  held = new Stream;
  use(self, comm, self.ranks, *held);
  self.expect("taken", 2);
  self.meet("leaving");
}

/// Non-blocking communicators: the first call comes right after the communicator says that it is ready.
SCENARIO(non_blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclComm_t comm = self.join("world", &config);
  const auto ready = [comm] {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) MUST(ncclCommGetAsyncError(comm, &state));
    return state;
  };
  MUST(ready());
  const Stream stream;
  use(self, comm, self.ranks, stream);
  check_status(comm, onehopOn, 2, 0);
  self.expect("taken", 2);
  MUST(ncclCommFinalize(comm) == ncclInProgress);
  MUST(ready());
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::node
