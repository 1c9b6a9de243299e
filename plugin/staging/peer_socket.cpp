#include "plugin/staging/peer_socket.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "plugin/staging/user.hpp"

namespace onehop {
namespace {

/// What ranks send each other, with the descriptor if there is one.
struct Letter {
  uint64_t to[2];    ///< secret of the receiver: the filter looks here
  uint64_t from[2];  ///< secret of the sender
};

Error failed(const std::string& what) {
  return {what + ": " + std::strerror(errno)};
}

bool equal(const uint64_t (&a)[2], const uint64_t (&b)[2]) {
  return a[0] == b[0] && a[1] == b[1];
}

/// A socket address in the abstract namespace: a zero, and a name.
struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;

  explicit Name(uint64_t name) {
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "onehop-%016llx",
                                     static_cast<unsigned long long>(name));
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
};

/// Lets nothing in but what begins with this secret.
bool attach_filter(int socket, const uint64_t (&secret)[2]) {
  constexpr size_t kWords = sizeof(secret) / (sizeof(uint32_t));
  std::array<uint32_t, kWords> words{};
  std::memcpy(words.data(), secret, sizeof(secret));
  std::array<sock_filter, 2 * kWords + 2> program{};
  for (size_t w = 0; w < kWords; ++w) {
    program[2 * w] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(w * sizeof(uint32_t)));
    // A filter loads words as they are in networks. Another word: to the last statement.
    program[2 * w + 1] =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[w]), 0, static_cast<uint8_t>(2 * kWords - 2 * w - 1));
  }
  constexpr uint32_t kWhole = 0xFFFFFFFF, kNothing = 0;
  program[2 * kWords] = BPF_STMT(BPF_RET | BPF_K, kWhole);
  program[2 * kWords + 1] = BPF_STMT(BPF_RET | BPF_K, kNothing);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

/// Room for the sender's credentials and one descriptor. (The alignment makes it two; more are not received.)
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))];
};

/// What came with a letter.
struct Attached {
  std::vector<Fd> fds;
  std::optional<uid_t> user;

  explicit Attached(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
        ucred credentials;
        std::memcpy(&credentials, CMSG_DATA(part), sizeof(credentials));
        user = credentials.uid;
      } else if (part->cmsg_type == SCM_RIGHTS) {
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
          fds.emplace_back(fd);
        }
      }
    }
  }
};

}  // namespace

Result<PeerSocket> PeerSocket::open() {
  PeerSocket made;
  SocketAddress& address = made.address_;
  address.network = namespace_identity("net");
  if (address.network == 0) return Error{"the network namespace cannot be told"};
  if (getrandom(&address.name, sizeof(address.name), 0) != sizeof(address.name) ||
      getrandom(address.secret, sizeof(address.secret), 0) != sizeof(address.secret))
    return failed("getrandom");
  made.socket_ = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int socket = made.socket_.get();
  if (socket < 0) return failed("a unix socket");
  const int on = 1;
  // Both before it has a name: nothing may come in without them.
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      !attach_filter(socket, address.secret))
    return failed("guarding a unix socket");
  Name name(address.name);
  if (bind(socket, name.get(), name.bytes) != 0) return failed("naming a unix socket");
  return made;
}

void PeerSocket::expect(uint32_t peer, const SocketAddress& address, int memory) {
  peers_.push_back({peer, address, memory, false, std::nullopt});
}

void PeerSocket::send(Peer& peer) {
  Letter letter{};
  std::copy(std::begin(peer.address.secret), std::end(peer.address.secret), letter.to);
  std::copy(std::begin(address_.secret), std::end(address_.secret), letter.from);
  iovec data{&letter, sizeof(letter)};
  Name name(peer.address.name);
  Control control{};
  msghdr message{};
  message.msg_name = name.get();
  message.msg_namelen = name.bytes;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (peer.memory >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &peer.memory, sizeof(int));
  }
  if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    peer.sent = true;
    return;
  }
  // Its queue is full of what other ranks sent (it holds about ten), or this call was interrupted: later.
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
  peer.sent = true;
  peer.came = failed("sending to the socket of rank " + std::to_string(peer.rank));
}

bool PeerSocket::receive() {
  Letter letter{};
  char more = 0;
  iovec data[] = {{&letter, sizeof(letter)}, {&more, sizeof(more)}};  // of a longer one it is seen
  Control control{};
  msghdr message{};
  message.msg_iov = data;
  message.msg_iovlen = std::size(data);
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const ssize_t bytes = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return errno == EINTR;
  Attached attached(message);  // closes what is not taken out of it
  if (bytes != sizeof(letter) || !equal(letter.to, address_.secret)) return true;
  const auto peer = std::find_if(peers_.begin(), peers_.end(),
                                 [&](const Peer& p) { return equal(p.address.secret, letter.from); });
  if (peer == peers_.end() || peer->came) return true;
  const std::string rank = "rank " + std::to_string(peer->rank);
  const size_t wanted = peer->memory >= 0 ? 1 : 0;
  if (!attached.user || !is_own_user(*attached.user, getuid()))
    peer->came = Error{rank + " runs as another user, or as one that this user namespace does not know"};
  else if ((message.msg_flags & MSG_CTRUNC) != 0 || attached.fds.size() != wanted)
    peer->came = Error{"of " + rank + " came " + std::to_string(attached.fds.size()) + " descriptors, not " +
                       std::to_string(wanted) + ": has this process too many open files?"};
  else
    peer->came = wanted == 1 ? std::move(attached.fds.front()) : Fd();
  return true;
}

bool PeerSocket::advance() {
  for (Peer& peer : peers_)
    if (!peer.sent) send(peer);
  while (receive()) {
  }
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.sent && p.came; });
}

std::optional<Result<Fd>> PeerSocket::take(uint32_t peer) {
  const auto at = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.rank == peer; });
  if (at == peers_.end()) return std::nullopt;
  if (at->came) return std::exchange(at->came, Error{"it was taken before"});
  return Error{"nothing came from rank " + std::to_string(peer) + " over its socket in time"};
}

}  // namespace onehop
