// Descriptors over sockets, and what strangers, other users and broken peers may send instead.
#include "plugin/staging/peer_socket.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "plugin/staging/shared_memory.hpp"

namespace onehop::test {
namespace {

using Clock = std::chrono::steady_clock;

size_t descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Until nothing is missing, or the time is over: whether nothing is.
bool finish(std::initializer_list<PeerSocket*> sockets, std::chrono::milliseconds most) {
  const auto deadline = Clock::now() + most;
  while (true) {
    bool done = true;
    for (PeerSocket* socket : sockets) done &= socket->advance();
    if (done || Clock::now() > deadline) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
constexpr std::chrono::milliseconds kSoon{10'000}, kLongEnough{50};

ino_t file_of(int fd) {
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  return status.st_ino;
}

int some_memory() {
  return memfd_create("onehop-test", MFD_CLOEXEC);
}

TEST(PeerSocket, HandsEveryRankTheMemoryOfEveryOther) {
  constexpr uint32_t kRanks = 16;  // more than a socket's queue holds
  const size_t before = descriptors();
  {
    std::vector<PeerSocket> sockets;
    std::vector<Fd> memory;
    for (uint32_t r = 0; r < kRanks; ++r) {
      Result<PeerSocket> opened = PeerSocket::open();
      ASSERT_TRUE(opened) << opened.reason();
      sockets.push_back(std::move(*opened));
      memory.emplace_back(some_memory());
    }
    for (uint32_t r = 0; r < kRanks; ++r)
      for (uint32_t peer = 0; peer < kRanks; ++peer)
        if (peer != r) {
          EXPECT_TRUE(sockets[r].address().reaches(sockets[peer].address()));
          sockets[r].expect(peer, sockets[peer].address(), memory[r].get());
        }
    const auto deadline = Clock::now() + kSoon;
    for (bool done = false; !done && Clock::now() < deadline;) {
      done = true;
      for (PeerSocket& socket : sockets) done &= socket.advance();
    }
    for (uint32_t r = 0; r < kRanks; ++r)
      for (uint32_t peer = 0; peer < kRanks; ++peer) {
        std::optional<Result<Fd>> came = sockets[r].take(peer);
        ASSERT_EQ(came.has_value(), peer != r);
        if (!came) continue;
        ASSERT_TRUE(*came) << came->reason();
        EXPECT_EQ(file_of((*came)->get()), file_of(memory[peer].get()));
        EXPECT_NE(fcntl((*came)->get(), F_GETFD) & FD_CLOEXEC, 0);
        EXPECT_FALSE(*sockets[r].take(peer)) << "it was taken";
      }
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(PeerSocket, WithoutMemoryOnlySaysWhoIsThere) {
  Result<PeerSocket> a = PeerSocket::open(), b = PeerSocket::open();
  ASSERT_TRUE(a && b);
  a->expect(1, b->address(), -1);
  b->expect(0, a->address(), -1);
  EXPECT_TRUE(finish({&*a, &*b}, kSoon));
  std::optional<Result<Fd>> came = a->take(1);
  ASSERT_TRUE(came && *came) << came->reason();
  EXPECT_LT((*came)->get(), 0);
}

/// Nothing is left in the machine's list of names when the socket is gone.
TEST(PeerSocket, LeavesNoName) {
  const auto names = [] {
    std::ifstream file("/proc/net/unix");
    size_t count = 0;
    for (std::string line; std::getline(file, line);) count += line.find("@onehop-") != std::string::npos;
    return count;
  };
  const size_t before = names();
  {
    const Result<PeerSocket> socket = PeerSocket::open();
    ASSERT_TRUE(socket);
    EXPECT_EQ(names(), before + 1);
  }
  EXPECT_EQ(names(), before);
}

/// A socket of somebody else, who sends what he likes to where he likes.
class Sender {
 public:
  Sender() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  /// Letters begin with the secret of the receiver, and then that of the sender.
  static std::vector<uint64_t> letter(const SocketAddress& to, const SocketAddress& from) {
    return {to.secret[0], to.secret[1], from.secret[0], from.secret[1]};
  }
  bool send(const SocketAddress& to, const void* bytes, size_t size, const std::vector<int>& fds) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "onehop-%016llx",
                                     static_cast<unsigned long long>(to.name));
    iovec data{const_cast<void*>(bytes), size};
    std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
    msghdr message{};
    message.msg_name = &address;
    message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
    }
    return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }
  bool send(const SocketAddress& to, const std::vector<uint64_t>& words, const std::vector<int>& fds) const {
    return send(to, words.data(), words.size() * sizeof(uint64_t), fds);
  }

 private:
  Fd socket_;
};

/// Rank 0, which waits for rank 1; what rank 1 sends is the test's.
class Peers : public testing::Test {
 protected:
  void SetUp() override {
    for (PeerSocket* socket : {&mine_, &theirs_}) {
      Result<PeerSocket> opened = PeerSocket::open();
      ASSERT_TRUE(opened) << opened.reason();
      *socket = std::move(*opened);
    }
    mine_.expect(1, theirs_.address(), memory_.get());
    before_ = descriptors();
  }
  /// No descriptor was kept but `more`.
  void expect_no_more(size_t more = 0) const { EXPECT_EQ(descriptors(), before_ + more); }
  /// The real peer answers at last, and is believed.
  void expect_the_real_one() {
    theirs_.expect(0, mine_.address(), memory_.get());
    EXPECT_TRUE(finish({&mine_, &theirs_}, kSoon));
    std::optional<Result<Fd>> came = mine_.take(1);
    ASSERT_TRUE(came && *came) << came->reason();
    EXPECT_EQ(file_of((*came)->get()), file_of(memory_.get()));
  }
  std::string reason() {
    const std::optional<Result<Fd>> came = mine_.take(1);
    return !came ? "nobody is expected" : *came ? "it is believed" : came->reason();
  }

  Fd memory_ = Fd(some_memory());
  const Fd evil_ = Fd(some_memory());
  PeerSocket mine_, theirs_;
  const Sender stranger_;
  size_t before_ = 0;
};

TEST_F(Peers, WhoAreSilentAreSaidToBe) {
  EXPECT_FALSE(finish({&mine_}, kLongEnough));
  EXPECT_EQ(reason(), "nothing came from rank 1 over its socket in time");
}

TEST_F(Peers, WhoseSocketIsGoneAreSaidToBe) {
  theirs_ = PeerSocket();
  EXPECT_TRUE(finish({&mine_}, kSoon));
  EXPECT_EQ(reason(), "sending to the socket of rank 1: Connection refused");
}

/// Who does not know the secret: nothing of what he sends is taken, and none of his descriptors opened here.
TEST_F(Peers, AreNotMistakenForStrangers) {
  const std::vector<uint64_t> good = Sender::letter(mine_.address(), theirs_.address());
  for (size_t word = 0; word < 2; ++word)
    for (const uint64_t bit : {uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63}) {
      std::vector<uint64_t> wrong = good;
      wrong[word] ^= bit;
      EXPECT_TRUE(stranger_.send(mine_.address(), wrong, {evil_.get()})) << "it is dropped in silence";
    }
  // Right as far as they go.
  for (const size_t size : {0u, 1u, 8u, 15u})
    stranger_.send(mine_.address(), good.data(), size, {evil_.get()});
  EXPECT_FALSE(finish({&mine_}, kLongEnough));
  expect_no_more();
  expect_the_real_one();
}

/// Nobody can fill the queue of a rank, so that its peers would not get in.
TEST_F(Peers, GetInHoweverMuchStrangersSend) {
  const std::vector<uint64_t> wrong(64, 7);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(stranger_.send(mine_.address(), wrong, {evil_.get()})) << i << ": " << std::strerror(errno);
  expect_no_more();
  expect_the_real_one();
}

/// Letters of a rank's own, but broken: no other but a whole one is a letter.
TEST_F(Peers, LettersAreWhole) {
  std::vector<uint64_t> letter = Sender::letter(mine_.address(), theirs_.address());
  for (const size_t size : {16u, 24u, 31u})
    EXPECT_TRUE(stranger_.send(mine_.address(), letter.data(), size, {evil_.get()}));
  letter.push_back(0);
  for (const size_t size : {33u, 40u})
    EXPECT_TRUE(stranger_.send(mine_.address(), letter.data(), size, {evil_.get()}));
  // Of a rank that is not expected.
  EXPECT_TRUE(
      stranger_.send(mine_.address(), Sender::letter(mine_.address(), mine_.address()), {evil_.get()}));
  EXPECT_FALSE(finish({&mine_}, kLongEnough));
  expect_no_more();
  expect_the_real_one();
}

TEST_F(Peers, SendOneDescriptorEach) {
  for (const size_t count : {0u, 2u, 3u, 100u}) {
    SetUp();
    const std::vector<int> fds(count, evil_.get());
    EXPECT_TRUE(stranger_.send(mine_.address(), Sender::letter(mine_.address(), theirs_.address()), fds));
    EXPECT_TRUE(finish({&mine_}, kSoon));
    const std::string why = reason();
    EXPECT_EQ(why.rfind("of rank 1 came ", 0), 0u) << why;
    EXPECT_NE(why.find(" descriptors, not 1"), std::string::npos) << why;
    expect_no_more();
  }
}

TEST_F(Peers, SendNoSecondLetter) {
  const std::vector<uint64_t> letter = Sender::letter(mine_.address(), theirs_.address());
  EXPECT_TRUE(stranger_.send(mine_.address(), letter, {memory_.get()}));
  EXPECT_TRUE(stranger_.send(mine_.address(), letter, {evil_.get()}));
  EXPECT_TRUE(finish({&mine_}, kSoon));
  expect_no_more(1);
  std::optional<Result<Fd>> came = mine_.take(1);
  ASSERT_TRUE(came && *came);
  EXPECT_EQ(file_of((*came)->get()), file_of(memory_.get()));
}

/// A process that may open nothing more says so, and does not wait.
TEST_F(Peers, AreHeardWhereNoDescriptorIsFree) {
  EXPECT_TRUE(
      stranger_.send(mine_.address(), Sender::letter(mine_.address(), theirs_.address()), {evil_.get()}));
  rlimit limit{}, none{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = {3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(finish({&mine_}, kSoon));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_NE(reason().find("too many open files?"), std::string::npos);
  expect_no_more();
}

/// Another user who even knows the secrets, as a rank of the job does that was started as somebody else.
TEST_F(Peers, OfAnotherUserAreRefused) {
  if (getuid() != 0) GTEST_SKIP() << "only root can be another user";
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kOther = 4711;
    if (setgroups(0, nullptr) != 0 || setresgid(kOther, kOther, kOther) != 0 ||
        setresuid(kOther, kOther, kOther) != 0)
      _exit(2);
    _exit(Sender().send(mine_.address(), Sender::letter(mine_.address(), theirs_.address()), {evil_.get()})
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(finish({&mine_}, kSoon));
  EXPECT_EQ(reason(), "rank 1 runs as another user, or as one that this user namespace does not know");
  expect_no_more();
}

}  // namespace
}  // namespace onehop::test
