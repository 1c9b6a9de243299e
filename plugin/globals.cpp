#include "plugin/globals.hpp"

#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <ctime>

namespace onehop {

uint64_t random_identity() {
  uint64_t identity = 0;
  if (getrandom(&identity, sizeof(identity), GRND_NONBLOCK) == sizeof(identity)) return identity;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_nsec) << 32 ^ static_cast<uint64_t>(now.tv_sec) ^
         static_cast<uint64_t>(getpid());
}

Globals::Globals()
    : report(getauxval(AT_SECURE) != 0 ? settings_of_privileged() : read_settings(environ)),
      process(random_identity()) {}

Globals& globals() {
  static Globals& instance = *new Globals;
  return instance;
}

}  // namespace onehop
