// A library without any of NCCL's plugin symbols: it says that it was loaded, and NCCL closes it.

#include <unistd.h>

namespace {

[[gnu::constructor]] void say() {
  constexpr char kText[] = "plugin loaded\n";
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, kText, sizeof kText - 1);
}

}  // namespace
