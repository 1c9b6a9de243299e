// ThreadSanitizer makes everything many times slower: fewer operations then.
#pragma once

#include <cstdint>

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

}  // namespace onehop::test
