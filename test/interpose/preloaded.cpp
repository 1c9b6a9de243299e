// For LD_PRELOAD: watches the loader from its constructor.
#include <cstdio>

#include "test/interpose/late_hook.hpp"

namespace {
__attribute__((constructor)) void start() {
  using namespace onehop::interpose;
  if (onehop::Status watching = watch_loader(&test::LateHook::changed); !watching)
    std::fprintf(stderr, "%s\n", watching.reason().c_str());
}
}  // namespace
