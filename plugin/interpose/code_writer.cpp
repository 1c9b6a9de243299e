#include "plugin/interpose/code_writer.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plugin/interpose/memory_map.hpp"

namespace onehop::interpose {
namespace {

constexpr size_t kWord = 8, kCacheLine = 64;

uintptr_t address_of(const void* at) {
  return reinterpret_cast<uintptr_t>(at);
}

/// Every thread of this process executes a serialising instruction before this returns, so that none still
/// holds instructions that it fetched or decoded before.
void serialise_threads() {
  // Not in every kernel (4.16) and not under every seccomp filter. Without it this does nothing, and
  // write()'s three steps rest on the processor noticing stores to code that it has prefetched, as all x86-64
  // processors do in practice but none promises for code of another core.
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0)
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

template <class T>
void store(unsigned char* at, const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  __atomic_store_n(reinterpret_cast<T*>(at), value, __ATOMIC_RELEASE);
}

}  // namespace

bool fits_one_store(const unsigned char* at) {
  return address_of(at) % kWord + kJumpSize <= kWord;
}

bool can_write_jump(const unsigned char* at) {
  return fits_one_store(at) || address_of(at) % kCacheLine + 2 <= kCacheLine;
}

Result<WritableCode> WritableCode::open(const std::vector<unsigned char*>& jumps) {
  const Result<std::vector<Region>> regions = mapped_regions();
  if (!regions) return regions.error();

  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  std::vector<Page> pages;
  for (const unsigned char* jump : jumps) {
    const uintptr_t first = address_of(jump) & ~(page_size - 1);
    for (uintptr_t page = first; page < address_of(jump) + kJumpSize; page += page_size) {
      const auto same = [page](const Page& other) { return other.address == page; };
      if (std::any_of(pages.begin(), pages.end(), same)) continue;
      const auto holds = [page](const Region& region) { return region.begin <= page && page < region.end; };
      const auto region = std::find_if(regions->begin(), regions->end(), holds);
      if (region == regions->end() ||
          (region->protection & (PROT_READ | PROT_EXEC)) != (PROT_READ | PROT_EXEC))
        return Error{"a function does not lie in readable and executable memory"};
      pages.push_back({page, region->protection});
    }
  }

  // Execution stays permitted: other threads are running in these pages. From here on the destructor puts
  // back what was changed.
  WritableCode writable({});
  writable.pages_.reserve(pages.size());
  for (const Page& page : pages) {
    if (mprotect(reinterpret_cast<void*>(page.address), page_size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
      return Error{std::string("the system denies writing to code (") + std::strerror(errno) + ")"};
    writable.pages_.push_back(page);
  }
  return writable;
}

WritableCode::~WritableCode() {
  // Taking away a permission can fail only for want of memory to split a mapping that was split already to
  // get here.
  const auto page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const Page& page : pages_) mprotect(reinterpret_cast<void*>(page.address), page_size, page.protection);
}

void WritableCode::write(unsigned char* at, const JumpBytes& jump) {
  if (fits_one_store(at)) {
    // One aligned 8-byte store. Pairs with: the instruction fetch of every other core, which reads an aligned
    // quadword of code as a whole (AMD promises this for code that another core modifies; Intel's cores do
    // it, and run-time compilers rely on it). Without it: a fetch sees some of the five bytes, and jumps
    // anywhere. Why not weaker: two stores, or one that crosses the word, can be fetched between or
    // torn. Why not stronger: a locked instruction makes nothing more atomic for a fetch. Release, so that
    // the trampoline and `*original`, written before, are seen by whoever sees the jump; on x86-64 that costs
    // nothing and holds the compiler.
    unsigned char* word = at - address_of(at) % kWord;
    unsigned char bytes[kWord];
    std::memcpy(bytes, word, kWord);
    std::memcpy(bytes + (at - word), jump.data(), kJumpSize);
    store<uint64_t>(word, bytes);
    return;
  }

  // Three steps. First `jmp .` in the two leading bytes: threads that enter wait there, as the bytes behind
  // change. One store: within a cache line it becomes visible at once, and where it also lies in one aligned
  // word (all but one in eight places) AMD's promise holds again. Pairs with: the fetch of the two bytes.
  // Without it: a thread enters while the tail is half written. Why not weaker: two byte stores show `eb`
  // with an old second byte, a short jump to anywhere. Why not stronger (a trap, as kernels use): it needs a
  // signal handler, which belongs to the application.
  constexpr unsigned char kJumpToItself[] = {0xeb, 0xfe};
  store<uint16_t>(at, kJumpToItself);

  // Pairs with: instructions that another core fetched before the first step and has not executed yet.
  // Without it: that core may execute an old first byte with new ones behind it. Why not weaker (a fence):
  // fences order data, not what is already fetched. Why not stronger (stopping the threads): it would take
  // signals.
  serialise_threads();

  // The tail, which now nobody can reach but by the way that write()'s declaration describes. Byte by byte:
  // the order does not matter.
  for (size_t i = 2; i < kJumpSize; ++i) __atomic_store_n(at + i, jump[i], __ATOMIC_RELAXED);

  // Pairs with: cores that wait in the first step's jump and may have fetched the bytes behind it along with
  // it. Without it: the new head with an old tail. Weaker and stronger: as above.
  serialise_threads();

  // The head, and the threads go on into the finished jump. One store for the first step's reasons.
  store<uint16_t>(at, jump.data());
}

}  // namespace onehop::interpose
