// How ranks of one node hand descriptors of memory to each other, and see who their peers are: a datagram
// socket of each rank, in the abstract namespace of its network namespace. It needs no right to look into
// another process, as ranks in PID or user namespaces of their own have none. Nothing is left behind: the
// names vanish with the sockets.
//
// Everybody on the machine may find the name (/proc/net/unix) and send to it. So the socket has a filter that
// lets nothing in but what begins with its secret, which only the ranks of the communicator know. The kernel
// applies it within the call of the sender: a stranger can neither fill the queue nor leave a descriptor in
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/result.hpp"
#include "plugin/staging/fd.hpp"

namespace onehop {

/// Where a rank's socket is; exchanged by the ranks.
struct SocketAddress {
  uint64_t network = 0;     ///< network namespace; 0: the rank has no socket
  uint64_t name = 0;        ///< random, and public
  uint64_t secret[2] = {};  ///< random; the ranks alone know it

  /// Whether two ranks can send to each other.
  bool reaches(const SocketAddress& other) const { return network != 0 && network == other.network; }
};

class PeerSocket {
 public:
  static Result<PeerSocket> open();

  const SocketAddress& address() const { return address_; }
  /// From now on `peer`, whose socket is there, is to be sent this rank's `memory` (a descriptor that must
  /// stay open, or -1: it is only to see who this is), and to send the like.
  void expect(uint32_t peer, const SocketAddress&, int memory);
  /// Sends and receives what can be without waiting. False: something is missing yet.
  bool advance();
  /// What came from `peer`, of this process's own user: its memory, or no descriptor if none was expected.
  /// Nothing if nobody was expected.
  std::optional<Result<Fd>> take(uint32_t peer);

 private:
  struct Peer {
    uint32_t rank;
    SocketAddress address;
    int memory;  ///< of this rank, for the peer
    bool sent = false;
    std::optional<Result<Fd>> came;
  };
  void send(Peer& peer);
  /// False: there is nothing to receive.
  bool receive();

  Fd socket_;
  SocketAddress address_;
  std::vector<Peer> peers_;
};

}  // namespace onehop
