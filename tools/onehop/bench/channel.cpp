#include "tools/onehop/bench/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace onehop::bench {

Channel::~Channel() {
  close(fd_);
}

bool Channel::send(const Json& value) const {
  const std::string line = value.dump() + "\n";
  for (size_t done = 0; done < line.size();) {
    // No SIGPIPE: that the other end is gone is for the caller to say.
    const ssize_t sent = ::send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

std::optional<Json> Channel::next() {
  const size_t end = pending_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  Json value = Json::parse(pending_.substr(0, end), nullptr, false);
  pending_.erase(0, end + 1);
  return value;
}

bool Channel::read() {
  char bytes[65536];
  ssize_t got;
  do {
    got = recv(fd_, bytes, sizeof(bytes), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  pending_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::optional<Json> Channel::receive() {
  while (true) {
    if (std::optional<Json> value = next()) return value;
    if (!read()) return std::nullopt;
  }
}

}  // namespace onehop::bench
