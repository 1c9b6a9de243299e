// Opening shared memory by a name that a peer sent, where the descriptor behind it may be anything. All the
// descriptors are this process's own.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "plugin/staging/shared_memory.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

constexpr size_t kBytes = 5000;

int memory_file(size_t bytes, int seals) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0, "memfd_create works");
  if (seals != 0) (void)fcntl(fd, F_ADD_SEALS, seals);
  return fd;
}

struct Descriptors {
  SharedMemory right;
  std::vector<int> all;

  Descriptors() {
    Result<SharedMemory> made = SharedMemory::create(kBytes);
    require(static_cast<bool>(made), "shared memory can be made");
    right = std::move(*made);
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const size_t size = right.size() + 4096;
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "a pipe can be made");
    all = {right.name().fd,
           memory_file(size, kSeals),         // without the nonce
           memory_file(size, 0),              // could shrink under a mapping
           memory_file(size + 4096, kSeals),  // of another size
           ends[0],                           // opening it would wait
           open("/dev/null", O_RDWR | O_CLOEXEC),
           open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
           1000000};  // none
  }
};

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  static Descriptors descriptors;
  if (size == 0) return 0;
  const int fd = descriptors.all[*data % descriptors.all.size()];
  ++data, --size;
  SharedMemoryName name = descriptors.right.name();
  disturb(name, data, size);
  // No other process's descriptors are tried, nor any but these.
  if (name.pid > 0) name.pid = getpid();
  if (name.fd >= 0) name.fd = fd;
  const SharedMemoryName& right = descriptors.right.name();
  const bool is_right = std::memcmp(&name, &right, sizeof(name)) == 0;
  const Result<SharedMemory> opened = SharedMemory::open(name, kBytes);
  require(static_cast<bool>(opened) == is_right, "opened exactly if it is that memory",
          opened ? "opened" : opened.reason());
  if (!opened) return require_line(opened.reason()), 0;
  require(opened->size() == descriptors.right.size(), "it has the size that was asked for");
  return 0;
}
