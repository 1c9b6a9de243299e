// ONEHOP_TEST_BLIND=1: a process that cannot open the host memory that others share, as in a container that
// may not look into other processes. ONEHOP_TEST_MUTE=1: one that can name no socket. The plugin's calls of
// open() and bind() come here, as this program's own do.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

/// The link of a descriptor of another process to memory of the plugin's.
bool is_shared_memory(const char* path) {
  char target[64];
  const ssize_t length = readlink(path, target, sizeof(target));
  return length > 0 && std::string_view(target, static_cast<size_t>(length)).starts_with("/memfd:onehop (");
}

int open_file(const char* path, int flags, unsigned mode) {
  if (std::getenv("ONEHOP_TEST_BLIND") != nullptr && is_shared_memory(path)) {
    errno = EACCES;
    return -1;
  }
  constexpr int kFromHere = -100;  // AT_FDCWD; its header declares the functions below otherwise
  return static_cast<int>(syscall(SYS_openat, kFromHere, path, flags, mode));
}

}  // namespace

#define OPEN(name)                                                                               \
  extern "C" __attribute__((visibility("default"))) int name(const char* path, int flags, ...) { \
    va_list rest;                                                                                \
    va_start(rest, flags);                                                                       \
    const unsigned mode = va_arg(rest, unsigned);                                                \
    va_end(rest);                                                                                \
    return open_file(path, flags, mode);                                                         \
  }
extern "C" __attribute__((visibility("default"))) int bind(int socket, const void* address, unsigned bytes) {
  if (std::getenv("ONEHOP_TEST_MUTE") != nullptr) {
    errno = EACCES;
    return -1;
  }
  return static_cast<int>(syscall(SYS_bind, socket, address, bytes));
}

OPEN(open)
OPEN(open64)
