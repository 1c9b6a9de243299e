// Host memory that several processes of a node share, without a name anywhere: a memfd, which peers are sent
// over a socket (peer_socket.hpp), or open through the owner's /proc/<pid>/fd. Nothing is left behind
// whatever way a process ends, /dev/shm is not used, and only the same user's memory is mapped.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugin/result.hpp"
#include "plugin/staging/fd.hpp"

namespace onehop {

/// By what a peer finds and knows the memory. All of it is checked before a byte is believed: a process id of
/// another namespace may name any process.
struct SharedMemoryName {
  uint64_t bytes = 0;
  uint64_t nonce[2] = {};  ///< random; also in the memory
  int32_t pid = 0;
  int32_t fd = -1;
};

/// Whether a name from a peer, of memory for `bytes` bytes, can be one at all. Nothing is opened for it, nor
/// looked for, unless it can.
Status check_name(const SharedMemoryName&, size_t bytes);
/// Where a name that was checked leads to: /proc/<pid>/fd/<fd>.
std::string path_of(const SharedMemoryName&);

class SharedMemory {
 public:
  static Result<SharedMemory> create(size_t bytes);
  /// Through the owner's /proc. Fails unless it is this user's memory of that name, of `bytes` bytes, which
  /// its owner cannot shrink any more.
  static Result<SharedMemory> open(const SharedMemoryName&, size_t bytes);
  /// The same of a descriptor that the owner sent.
  static Result<SharedMemory> adopt(Fd, const SharedMemoryName&, size_t bytes);

  SharedMemory() = default;
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  ~SharedMemory();

  /// Zeroed at first; page-aligned.
  void* data() const { return data_; }
  size_t size() const { return size_; }
  /// Its `fd` is the descriptor in this process, as long as this is the owner's.
  const SharedMemoryName& name() const { return name_; }
  /// Nobody can open it any more; who has it, keeps it.
  void close_name();

 private:
  Status map(int fd, size_t bytes);

  void* data_ = nullptr;
  size_t size_ = 0;  ///< without the page behind it, which holds the nonce
  SharedMemoryName name_;
};

}  // namespace onehop
