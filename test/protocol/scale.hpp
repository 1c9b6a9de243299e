// ThreadSanitizer makes everything many times slower: fewer operations then, and ordinary memory only.
#pragma once

#include <cstdint>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define ONEHOP_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONEHOP_TEST_TSAN 1
#endif
#endif
#ifndef ONEHOP_TEST_TSAN
#define ONEHOP_TEST_TSAN 0
#endif

namespace onehop::test {

constexpr uint32_t scaled(uint32_t normally, uint32_t under_tsan) {
  return ONEHOP_TEST_TSAN ? under_tsan : normally;
}

/// Whether over reordering memory: its locks would hide from ThreadSanitizer what it is to see.
inline std::vector<bool> fabrics() {
  return ONEHOP_TEST_TSAN ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

}  // namespace onehop::test
