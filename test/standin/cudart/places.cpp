#include "test/standin/cudart/places.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

/// ONEHOP_STANDIN_KILL, read once.
struct Fate {
  std::string name;     ///< empty: any
  uint64_t number = 0;  ///< 0: none

  Fate() {
    const char* setting = std::getenv("ONEHOP_STANDIN_KILL");
    if (setting == nullptr) return;
    const char* colon = std::strrchr(setting, ':');
    if (colon != nullptr) name.assign(setting, colon);
    number = std::strtoull(colon != nullptr ? colon + 1 : setting, nullptr, 10);
  }
};

std::atomic<uint64_t> places{0}, of_that_name{0};

}  // namespace

void onehop_standin_come_to(const char* place) {
  static const Fate& fate = *new Fate;
  const uint64_t all = ++places;
  if (fate.number == 0 || (!fate.name.empty() && fate.name != place)) return;
  if ((fate.name.empty() ? all : ++of_that_name) != fate.number) return;
  const std::string line = "killed at place " + std::to_string(all) + ": " + place + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  (void)raise(SIGKILL);
}

uint64_t onehop_standin_places() {
  return places;
}
