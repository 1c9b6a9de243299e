// Host memory that processes share: who can open it, and who cannot.
#include "plugin/staging/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace onehop::test {
namespace {

constexpr size_t kPage = 4096, kBytes = 3 * kPage;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// What this process holds, and must give back.
struct Held {
  size_t descriptors = 0, mappings = 0;
  Held() {
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      ++descriptors;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      mappings += line.find("memfd:onehop") != std::string::npos;
  }
};

#define EXPECT_SAME_AS(before)                              \
  {                                                         \
    const Held now;                                         \
    EXPECT_EQ(now.descriptors, (before).descriptors);       \
    EXPECT_EQ(now.mappings, (before).mappings) << "mapped"; \
  }

unsigned char* bytes_of(const SharedMemory& memory) {
  return static_cast<unsigned char*>(memory.data());
}

/// Whether `check` is true in a forked child, which ends there.
bool in_a_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_mapped(const void* page) {
  unsigned char resident = 0;
  return mincore(const_cast<void*>(page), kPage, &resident) == 0;
}

TEST(SharedMemory, IsWholeZeroedPages) {
  const Held before;
  for (const size_t asked : {size_t{1}, kPage - 1, kPage, kPage + 1, size_t{16} << 20}) {
    const Result<SharedMemory> memory = SharedMemory::create(asked);
    ASSERT_TRUE(memory) << memory.reason();
    EXPECT_GE(memory->size(), asked);
    EXPECT_LT(memory->size(), asked + kPage);
    EXPECT_EQ(memory->size() % kPage, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kPage, 0u);
    for (size_t i = 0; i < memory->size(); i += 997) ASSERT_EQ(bytes_of(*memory)[i], 0) << i;
    EXPECT_EQ(bytes_of(*memory)[memory->size() - 1], 0);
  }
  EXPECT_SAME_AS(before);
}

TEST(SharedMemory, IsTheSameInAnotherProcess) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  bytes_of(*memory)[kBytes - 1] = 7;
  EXPECT_TRUE(in_a_child([&] {
    const Result<SharedMemory> other = SharedMemory::open(memory->name(), kBytes);
    if (!other || other->size() != kBytes || bytes_of(*other)[kBytes - 1] != 7) return false;
    bytes_of(*other)[0] = 9;
    return true;
  }));
  EXPECT_EQ(bytes_of(*memory)[0], 9);
}

TEST(SharedMemory, OutlivesItsOwnerWhereItIsOpen) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    Result<SharedMemory> memory = SharedMemory::create(kBytes);
    bytes_of(*memory)[5] = 55;
    (void)!write(pipe_ends[1], &memory->name(), sizeof(SharedMemoryName));
    pause();
  }
  SharedMemoryName name;
  ASSERT_EQ(read(pipe_ends[0], &name, sizeof(name)), static_cast<ssize_t>(sizeof(name)));
  const Result<SharedMemory> memory = SharedMemory::open(name, kBytes);
  ASSERT_TRUE(memory) << memory.reason();
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(bytes_of(*memory)[5], 55);
  const Held before;
  const Result<SharedMemory> late = SharedMemory::open(name, kBytes);
  EXPECT_FALSE(late) << "the owner is dead";
  EXPECT_NE(late.reason().find(std::to_string(owner)), std::string::npos) << late.reason();
  EXPECT_SAME_AS(before);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(SharedMemory, HasNoNameOnceThatIsClosed) {
  const Held before;
  {
    Result<SharedMemory> memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    const SharedMemoryName name = memory->name();
    const Result<SharedMemory> other = SharedMemory::open(name, kBytes);
    ASSERT_TRUE(other);
    memory->close_name();
    memory->close_name();  // again
    EXPECT_EQ(Held().descriptors, before.descriptors);
    EXPECT_FALSE(SharedMemory::open(name, kBytes));
    EXPECT_FALSE(SharedMemory::open(memory->name(), kBytes));
    bytes_of(*memory)[1] = 11;
    EXPECT_EQ(bytes_of(*other)[1], 11) << "who has it keeps it";
  }
  EXPECT_SAME_AS(before);
}

/// A descriptor that another program inherits would keep the memory, and its name, for as long as that runs.
TEST(SharedMemory, IsNotInheritedByOtherPrograms) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  EXPECT_NE(fcntl(memory->name().fd, F_GETFD) & FD_CLOEXEC, 0);
}

/// Pinned pages must not be copied when a forked child writes, nor does the child have a use for them.
TEST(SharedMemory, IsNotMappedInAForkedChild) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  const Result<SharedMemory> other = SharedMemory::open(memory->name(), kBytes);
  ASSERT_TRUE(other);
  for (const SharedMemory* each : {&*memory, &*other}) {
    EXPECT_TRUE(is_mapped(each->data()));
    EXPECT_TRUE(in_a_child([&] {
      return !is_mapped(each->data()) && !is_mapped(bytes_of(*each) + kBytes - kPage) &&
             !is_mapped(bytes_of(*each) + kBytes);
    }));
  }
}

/// A child that ends by exit() runs destructors: its parent's name and memory are not the child's to close.
TEST(SharedMemory, AForkedChildClosesNothingOfItsParent) {
  Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  EXPECT_TRUE(in_a_child([&] {
    const int fd = memory->name().fd;
    memory->close_name();
    return fcntl(fd, F_GETFD) != -1;
  }));
  EXPECT_TRUE(SharedMemory::open(memory->name(), kBytes));
}

TEST(SharedMemory, MovesWithEverythingItHas) {
  const Held before;
  {
    Result<SharedMemory> memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    void* const data = memory->data();
    SharedMemory moved(std::move(*memory));
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.size(), kBytes);
    EXPECT_EQ(memory->data(), nullptr);
    SharedMemory assigned;
    assigned = std::move(moved);
    EXPECT_EQ(assigned.data(), data);
    EXPECT_TRUE(SharedMemory::open(assigned.name(), kBytes));
  }
  EXPECT_SAME_AS(before);
}

/// Memory that its owner could shrink would end every peer that touches it.
TEST(SharedMemory, CannotBeShrunkOrGrown) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  EXPECT_EQ(ftruncate(memory->name().fd, 0), -1);
  EXPECT_EQ(ftruncate(memory->name().fd, 1 << 20), -1);
  EXPECT_EQ(fcntl(memory->name().fd, F_GET_SEALS) & kSeals, kSeals);
}

/// What open() must not take for the memory of `name`, which is `good` but for one thing. Nothing is left
/// open or mapped.
void expect_refused(const SharedMemoryName& name, const std::string& what, size_t bytes = kBytes) {
  const Held before;
  const Result<SharedMemory> memory = SharedMemory::open(name, bytes);
  EXPECT_FALSE(memory) << what;
  EXPECT_FALSE(memory.reason().empty()) << what;
  EXPECT_SAME_AS(before);
}

TEST(SharedMemoryName, IsBelievedOnlyAsAWhole) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  const SharedMemoryName good = memory->name();
  EXPECT_TRUE(SharedMemory::open(good, kBytes));
  EXPECT_TRUE(SharedMemory::open(good, kBytes - 1)) << "the same pages";
  for (const size_t bytes : {kBytes + 1, kBytes + kPage, kBytes - kPage, size_t{0}, size_t{1} << 40})
    expect_refused(good, "another size than this rank has", bytes);

  const auto changed = [&](auto change, const char* what) {
    SharedMemoryName name = good;
    change(name);
    expect_refused(name, what);
  };
  changed([](SharedMemoryName& n) { n.bytes += kPage; }, "another size than the peer has");
  changed([](SharedMemoryName& n) { n.bytes = 0; }, "no size");
  changed([](SharedMemoryName& n) { n.nonce[0] ^= 1; }, "another first half of the nonce");
  changed([](SharedMemoryName& n) { n.nonce[1] ^= uint64_t{1} << 63; }, "another second half of the nonce");
  changed([](SharedMemoryName& n) { n.pid = 0; }, "no process");
  changed([](SharedMemoryName& n) { n.pid = -1; }, "no process");
  changed([](SharedMemoryName& n) { n.pid = INT32_MAX; }, "no such process");
  changed([](SharedMemoryName& n) { n.pid = 1; }, "another process");
  changed([](SharedMemoryName& n) { n.fd = -1; }, "no descriptor");
  changed([](SharedMemoryName& n) { n.fd = 1000; }, "no such descriptor");
  expect_refused(SharedMemoryName{}, "nothing");
}

TEST(SharedMemoryName, OfOtherMemoryOfTheSameSizeIsRefused) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes), other = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory && other);
  EXPECT_NE(std::memcmp(memory->name().nonce, other->name().nonce, sizeof(memory->name().nonce)), 0);
  SharedMemoryName name = memory->name();
  name.fd = other->name().fd;
  expect_refused(name, "other memory");
}

/// A descriptor that a name leads to, and that is none of ours.
struct Other {
  const char* what;
  std::function<int()> open;
};

int file_of_right_size(int fd, const SharedMemoryName& name) {
  if (ftruncate(fd, kBytes + kPage) != 0) return -1;
  return pwrite(fd, name.nonce, sizeof(name.nonce), kBytes) == sizeof(name.nonce) ? fd : -1;
}

/// A process id of another namespace may name any process, and the descriptor anything; opening must neither
/// wait nor believe it. Some of these even have the right nonce in the right place.
TEST(SharedMemoryName, ThatLeadsToSomethingElseIsRefused) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  const SharedMemoryName good = memory->name();
  std::string folder = "/tmp/onehop-unit-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string fifo = folder + "/fifo", file = folder + "/file";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto memfd = [&](int seals) {
    const int fd = file_of_right_size(memfd_create("onehop", MFD_CLOEXEC | MFD_ALLOW_SEALING), good);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
  };
  const Other others[] = {
      {"a pipe",
       [] {
         int ends[2];
         if (pipe(ends) != 0) return -1;
         close(ends[1]);
         return ends[0];
       }},
      {"a FIFO without a writer", [&] { return open(fifo.c_str(), O_RDONLY | O_NONBLOCK); }},
      {"a folder", [&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY); }},
      {"a device", [] { return open("/dev/zero", O_RDWR); }},
      {"a socket", [] { return socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"a memfd without seals", [&] { return memfd(0); }},
      {"a memfd that can be shrunk", [&] { return memfd(F_SEAL_GROW | F_SEAL_SEAL); }},
      {"a memfd that can be grown", [&] { return memfd(F_SEAL_SHRINK | F_SEAL_SEAL); }},
      {"a file", [&] { return file_of_right_size(open(file.c_str(), O_CREAT | O_RDWR, 0600), good); }},
      {"a file in memory",
       [&] { return file_of_right_size(open("/dev/shm", O_TMPFILE | O_RDWR, 0600), good); }},
  };
  for (const Other& other : others) {
    SharedMemoryName name = good;
    name.fd = other.open();
    if (name.fd < 0 && errno == ENOENT) continue;  // a machine without /dev/shm
    ASSERT_GE(name.fd, 0) << other.what << ": " << std::strerror(errno);
    expect_refused(name, other.what);
    // A peer may send it as well.
    const Held before;
    EXPECT_FALSE(SharedMemory::adopt(Fd(dup(name.fd)), good, kBytes)) << other.what;
    EXPECT_SAME_AS(before);
    close(name.fd);
  }
  // The control: nothing but the descriptor is wrong above.
  SharedMemoryName sealed = good;
  sealed.fd = memfd(kSeals);
  EXPECT_TRUE(SharedMemory::open(sealed, kBytes));
  EXPECT_TRUE(SharedMemory::adopt(Fd(dup(sealed.fd)), good, kBytes));
  for (const size_t bytes : {kBytes + kPage, kBytes - kPage, size_t{0}})
    EXPECT_FALSE(SharedMemory::adopt(Fd(dup(sealed.fd)), good, bytes)) << bytes;
  close(sealed.fd);
  std::filesystem::remove_all(folder);
}

/// Root could open everybody's; another user's is not mapped all the same.
TEST(SharedMemoryName, OfAnotherUserIsRefused) {
  if (getuid() != 0) GTEST_SKIP() << "only root can make another user's memory";
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(SharedMemory::open(memory->name(), kBytes));
  constexpr uid_t kOther = 4711;
  ASSERT_EQ(fchown(memory->name().fd, kOther, kOther), 0);
  const Held before;
  for (const Result<SharedMemory>& other :
       {SharedMemory::open(memory->name(), kBytes),
        SharedMemory::adopt(Fd(dup(memory->name().fd)), memory->name(), kBytes)}) {
    EXPECT_FALSE(other);
    EXPECT_NE(other.reason().find("belongs to another user"), std::string::npos) << other.reason();
  }
  EXPECT_SAME_AS(before);
}

/// To open a FIFO or a device may wait, or do something. inotify tells of every opening.
TEST(SharedMemoryName, ThatLeadsToSomethingElseIsNotEvenOpened) {
  const Result<SharedMemory> memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory);
  std::string folder = "/tmp/onehop-unit-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string fifo = folder + "/fifo", file = folder + "/file";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int fifo_fd = open(fifo.c_str(), O_RDWR), file_fd = open(file.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file_fd, kBytes), 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(watch, 0);
  for (const std::string& path : {fifo, file}) ASSERT_GE(inotify_add_watch(watch, path.c_str(), IN_OPEN), 0);
  for (const int fd : {fifo_fd, file_fd}) {
    SharedMemoryName name = memory->name();
    name.fd = fd;
    expect_refused(name, "a FIFO, and a file of another size");
    char event[sizeof(inotify_event) + 256];
    EXPECT_EQ(read(watch, event, sizeof(event)), -1) << "it was opened";
  }
  for (const int fd : {fifo_fd, file_fd, watch}) close(fd);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onehop::test
