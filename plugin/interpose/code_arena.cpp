#include "plugin/interpose/code_arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "plugin/interpose/memory_map.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace onehop::interpose {
namespace {

// A margin below 2 GiB, so that a displacement counted from an instruction's end is in reach too.
constexpr uintptr_t kReach = (uintptr_t{1} << 31) - (uintptr_t{1} << 16);
// Nothing is placed lower: vm.mmap_min_addr, and the room where a null pointer plus an offset should fault.
constexpr uintptr_t kLowest = uintptr_t{1} << 20;

/// The mapping at `at`, or null if something else was mapped there meanwhile.
void* try_map(uintptr_t at, size_t size) {
  void* wanted = reinterpret_cast<void*>(at);
  void* mapped =
      mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (mapped == wanted) return mapped;
  munmap(mapped, size);  // a kernel before 4.17 takes the address as a hint
  return nullptr;
}

}  // namespace

Result<CodeArena> CodeArena::map_near(uintptr_t begin, uintptr_t end, size_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  size = (size + page - 1) & ~(page - 1);
  const Result<std::vector<Region>> regions = mapped_regions();
  if (!regions) return regions.error();

  const uintptr_t lowest = std::max(end > kReach ? end - kReach : 0, kLowest);
  const uintptr_t highest = begin > UINTPTR_MAX - kReach ? UINTPTR_MAX : begin + kReach;
  const auto make = [size](uintptr_t at) { return static_cast<unsigned char*>(try_map(at, size)); };

  // Below the image first, as close as possible: above the executable is where the heap grows.
  for (size_t i = regions->size(); i-- > 0;) {
    const uintptr_t gap_end = (*regions)[i].begin;
    const uintptr_t gap_begin = std::max(i > 0 ? (*regions)[i - 1].end : 0, lowest);
    if (gap_end > begin || gap_end < size || gap_end - size < gap_begin) continue;
    if (unsigned char* data = make(gap_end - size)) return CodeArena(data, size);
  }
  for (size_t i = 0; i + 1 < regions->size(); ++i) {
    const uintptr_t gap_begin = (*regions)[i].end;
    const uintptr_t gap_end = std::min((*regions)[i + 1].begin, highest);
    if (gap_begin < end || gap_end < gap_begin || gap_end - gap_begin < size) continue;
    if (unsigned char* data = make(gap_begin)) return CodeArena(data, size);
  }
  return Error{"there is no free memory within 2 GiB"};
}

CodeArena::CodeArena(CodeArena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_), kept_(other.kept_) {}

CodeArena& CodeArena::operator=(CodeArena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(kept_, other.kept_);
  return *this;
}

CodeArena::~CodeArena() {
  if (data_ != nullptr && !kept_) munmap(data_, size_);
}

Status CodeArena::seal() {
  if (mprotect(data_, size_, PROT_READ | PROT_EXEC) == 0) return {};
  return Error{std::string("the system denies new executable memory (") + std::strerror(errno) + ")"};
}

}  // namespace onehop::interpose
