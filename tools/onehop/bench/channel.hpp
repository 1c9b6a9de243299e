// One end of a connection between the command and a process of a side: JSON values, one a line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace onehop::bench {

using Json = nlohmann::ordered_json;

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  int fd() const { return fd_; }
  /// False: the other end is gone.
  bool send(const Json& value) const;
  /// A value that has come already, whole.
  std::optional<Json> next();
  /// Waits for bytes and takes what has come. False: the other end is gone.
  bool read();
  /// Waits for a value. Nothing: the other end is gone.
  std::optional<Json> receive();

 private:
  int fd_;
  std::string pending_;
};

}  // namespace onehop::bench
