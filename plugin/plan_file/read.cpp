#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugin/plan_file/plan_file.hpp"

namespace onehop {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)

 private:
  int fd_;
};

Error error_of(const char* what) {
  return {std::string(what) + ": " + std::strerror(errno)};
}

}  // namespace

Result<PlanFile> read_plan_file(const std::string& path) {
  // A fifo does not block, a terminal does not become the process's own.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file < 0) return error_of("it cannot be opened");
  struct stat status {};
  if (fstat(file, &status) != 0) return error_of("it cannot be looked at");
  if (!S_ISREG(status.st_mode)) return Error{"it is no regular file"};
  // The size may change while it is read, and some files say 0: what counts is what is there.
  std::string bytes(kLargestPlanFile + 1, '\0');
  size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = read(file, bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_of("it cannot be read");
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  bytes.resize(length);
  return parse_plan_file(bytes);
}

}  // namespace onehop
