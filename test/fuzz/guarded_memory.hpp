// Memory between pages that nobody may touch, so that a read past its end is a finding even in code that was
// compiled without a sanitizer.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {

inline constexpr size_t kPage = 4096;

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t pages) : size_(pages * kPage) {
    void* all = mmap(nullptr, size_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(all != MAP_FAILED, "memory can be mapped");
    begin_ = static_cast<unsigned char*>(all) + kPage;
    require(mprotect(begin_, size_, PROT_READ | PROT_WRITE) == 0, "memory can be made writable");
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(begin_ - kPage, size_ + 2 * kPage); }

  unsigned char* begin() const { return begin_; }
  unsigned char* end() const { return begin_ + size_; }
  /// Copies `size` bytes to the very end and returns where they begin.
  unsigned char* place(const uint8_t* data, size_t size) {
    std::memset(begin_, 0xCC, size_ - size);
    return static_cast<unsigned char*>(std::memcpy(end() - size, data, size));
  }

 private:
  unsigned char* begin_ = nullptr;
  size_t size_;
};

}  // namespace onehop::fuzz
