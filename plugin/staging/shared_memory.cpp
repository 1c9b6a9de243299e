#include "plugin/staging/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "plugin/staging/user.hpp"

namespace onehop {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failed(const char* what) {
  return {std::string(what) + ": " + std::strerror(errno)};
}

size_t round_up(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

/// With the page of the nonce.
off_t whole(size_t bytes) {
  return static_cast<off_t>(round_up(bytes) + kPage);
}

Error not_the_peers(const SharedMemoryName& name) {
  return {"process " + std::to_string(name.pid) +
          " is not the peer, or has other memory; different PID namespaces?"};
}

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept {
  *this = std::move(other);
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

SharedMemory::~SharedMemory() {
  close_name();
  if (data_ != nullptr) munmap(data_, size_ + kPage);
}

void SharedMemory::close_name() {
  if (name_.fd >= 0 && name_.pid == getpid()) close(name_.fd);
  name_.fd = -1;
}

Status SharedMemory::map(int fd, size_t bytes) {
  size_ = round_up(bytes);
  void* memory = mmap(nullptr, size_ + kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return failed("mmap of shared memory");
  data_ = memory;
  // A forked child does not use it, and pinned pages must not be copied when it writes.
  (void)madvise(data_, size_ + kPage, MADV_DONTFORK);
  return {};
}

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  Fd fd(memfd_create("onehop", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failed("memfd_create");
  if (ftruncate(fd.get(), whole(bytes)) != 0) return failed("ftruncate");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return failed("sealing shared memory");
  SharedMemory memory;
  if (Status mapped = memory.map(fd.get(), bytes); !mapped) return mapped.error();
  SharedMemoryName& name = memory.name_;
  name.bytes = memory.size_;
  name.pid = getpid();
  if (getrandom(name.nonce, sizeof(name.nonce), 0) != sizeof(name.nonce)) return failed("getrandom");
  std::memcpy(static_cast<unsigned char*>(memory.data_) + memory.size_, name.nonce, sizeof(name.nonce));
  name.fd = fd.release();
  return memory;
}

Status check_name(const SharedMemoryName& name, size_t bytes) {
  // A record that nobody filled in is all zeros, as the nonce's place is in memory that nobody marked.
  const bool filled = name.pid > 0 && name.fd >= 0 && (name.nonce[0] != 0 || name.nonce[1] != 0);
  if (!filled) return Error{"a peer sent no name of shared memory"};
  if (name.bytes != round_up(bytes)) return not_the_peers(name);
  return {};
}

std::string path_of(const SharedMemoryName& name) {
  return "/proc/" + std::to_string(name.pid) + "/fd/" + std::to_string(name.fd);
}

Result<SharedMemory> SharedMemory::open(const SharedMemoryName& name, size_t bytes) {
  if (Status checked = check_name(name, bytes); !checked) return checked.error();
  const std::string path = path_of(name),
                    opening = "opening the shared memory of process " + std::to_string(name.pid);
  // A wrong process id could lead to a pipe or a device, where opening itself waits or acts: look first.
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return failed(opening.c_str());
  if (!S_ISREG(status.st_mode) || status.st_size != whole(bytes)) return not_the_peers(name);
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return failed(opening.c_str());
  return adopt(std::move(fd), name, bytes);
}

Result<SharedMemory> SharedMemory::adopt(Fd fd, const SharedMemoryName& name, size_t bytes) {
  // The seals come first: of a file that can have them nothing below waits for anybody.
  const int seals = fcntl(fd.get(), F_GET_SEALS);  // -1 of any other
  struct stat status;
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &status) != 0 ||
      status.st_size != whole(bytes) || name.bytes != round_up(bytes))
    return not_the_peers(name);
  if (!is_own_user(status.st_uid, geteuid()))
    return Error{"the memory of process " + std::to_string(name.pid) + " belongs to another user"};
  SharedMemory memory;
  if (Status mapped = memory.map(fd.get(), bytes); !mapped) return mapped.error();
  if (std::memcmp(static_cast<unsigned char*>(memory.data_) + memory.size_, name.nonce, sizeof(name.nonce)) !=
      0)
    return not_the_peers(name);
  return memory;
}

}  // namespace onehop
