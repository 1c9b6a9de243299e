// An object that is opened while the test runs. Its constructor calls its own function, as code of the object
// would.
#include <cstdio>

extern "C" {
__attribute__((visibility("default"), noinline)) long late_value(long x) {
  // Long enough to hold a jump.
  static volatile long base = 100;
  return base + x;
}
__attribute__((visibility("default"))) long late_seen_by_constructor = -1;
}

namespace {
// Through a pointer that the loader relocates, so that the compiler cannot see the result.
long (*volatile indirect)(long) = &late_value;
struct Constructed {
  Constructed() { late_seen_by_constructor = indirect(1); }
} constructed;
}  // namespace
