#include "tools/onehop/bench/interrupt.hpp"

#include <csignal>

namespace onehop::bench {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t noted = 0;

}  // namespace

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { noted = 1; };
  action.sa_flags = SA_RESETHAND;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

bool interrupted() {
  return noted != 0;
}

void ignore_interrupts() {
  for (const int signal : kSignals) ::signal(signal, SIG_IGN);
}

}  // namespace onehop::bench
