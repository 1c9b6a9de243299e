#include "test/standin/nccl/segment.hpp"

#include <sched.h>

#include <ctime>

namespace onehop::standin {

void Backoff::pause() {
  constexpr int kYields = 100;
  constexpr timespec kNap{0, 50'000};
  if (++pauses_ < kYields) {
    sched_yield();
  } else {
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace onehop::standin
