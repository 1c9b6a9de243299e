#include "tools/onehop/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace onehop {

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock;
  lock.name_ = path + ".lock";
  const auto failed = [&] {
    const int number = errno;
    lock.file_ = Fd();
    return Error{"cannot lock " + path + ": " + std::strerror(number)};
  };
  for (;;) {
    lock.file_ = Fd(::open(lock.name_.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!lock.file_) return failed();
    if (flock(lock.file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return failed();
      lock.file_ = Fd();
      return lock;
    }
    // Its last holder may have taken the name away between the two calls; a lock on that file keeps nobody
    // out.
    struct stat mine, named;
    if (fstat(lock.file_.get(), &mine) != 0) return failed();
    if (stat(lock.name_.c_str(), &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
      return lock;
  }
}

FileLock::~FileLock() {
  if (file_) (void)unlink(name_.c_str());  // while it is held, so that it is this one's name
}

}  // namespace onehop
