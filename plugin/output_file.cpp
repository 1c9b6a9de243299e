#include "plugin/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugin/staging/fd.hpp"

namespace onehop {

std::string path_of_process(std::string path) {
  const std::string pid = std::to_string(getpid());
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at + pid.size()))
    path.replace(at, 2, pid);
  return path;
}

Result<std::FILE*> open_output_file(const std::string& path, WriteMode mode) {
  const auto failed = [&](const char* why) { return Error{path + " cannot be written: " + why}; };
  constexpr mode_t kRights = 0644;
  const bool append = mode == WriteMode::kAppend;
  // O_NONBLOCK is for FIFOs; of files it changes nothing. What is there is cut only once it was looked at.
  Fd fd(open(path.c_str(),
             O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (append ? O_APPEND : 0),
             kRights));
  if (!fd) return failed(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return failed(std::strerror(errno));
  if (S_ISREG(status.st_mode)) {
    if (status.st_nlink > 1) return failed("it has another name, which may be meant for something else");
    if (!append && ftruncate(fd.get(), 0) != 0) return failed(std::strerror(errno));
  }
  std::FILE* file = fdopen(fd.get(), append ? "a" : "w");
  if (file == nullptr) return failed(std::strerror(errno));
  (void)fd.release();
  return file;
}

}  // namespace onehop
