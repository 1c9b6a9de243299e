#include "test/standin/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace onehop::standin {
namespace {

constexpr uint64_t kMagic = 0x6f6e65686f707368;  // "onehopsh"

std::string path_in_folder(uint64_t inode) {
  const char* folder = std::getenv("ONEHOP_STANDIN_FOLDER");
  return folder != nullptr ? std::string(folder) + "/standin." + std::to_string(inode) : "";
}

void* map(int descriptor, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

std::optional<SharedMemory> SharedMemory::create(size_t bytes) {
  return create(memfd_create("onehop-standin", MFD_CLOEXEC), bytes);
}

std::optional<SharedMemory> SharedMemory::create_for_nccl(size_t bytes) {
  const char* folder = std::getenv("ONEHOP_STANDIN_FOLDER");
  if (folder == nullptr) return create(bytes);
  std::string path = std::string(folder) + "/standin-XXXXXX";
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  struct stat status {};
  // Other users' processes too, and found by its inode.
  if (descriptor < 0 || fchmod(descriptor, 0666) != 0 || fstat(descriptor, &status) != 0 ||
      rename(path.c_str(), path_in_folder(status.st_ino).c_str()) != 0)
    return std::nullopt;
  return create(descriptor, bytes);
}

std::optional<SharedMemory> SharedMemory::create(int descriptor, size_t bytes) {
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  void* data = nullptr;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 && fstat(descriptor, &status) == 0) {
    data = map(descriptor, bytes);
  }
  if (data == nullptr) {
    ::close(descriptor);
    return std::nullopt;
  }
  return SharedMemory({kMagic, getpid(), descriptor, bytes, status.st_ino}, data);
}

std::optional<SharedMemory> SharedMemory::open(const SharedHandle& handle) {
  if (handle.magic != kMagic) return std::nullopt;
  const std::string path = "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.descriptor);
  int descriptor = ::open(path_in_folder(handle.inode).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  void* data = nullptr;
  const bool same = fstat(descriptor, &status) == 0 && status.st_ino == handle.inode &&
                    static_cast<uint64_t>(status.st_size) == handle.bytes;
  if (same) data = map(descriptor, handle.bytes);
  ::close(descriptor);  // the mapping keeps the file
  if (data == nullptr) return std::nullopt;
  SharedHandle imported = handle;
  imported.descriptor = -1;
  return SharedMemory(imported, data);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, handle_.bytes);
  if (handle_.descriptor >= 0) ::close(handle_.descriptor);
}

}  // namespace onehop::standin
