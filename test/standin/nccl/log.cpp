#include "test/standin/nccl/log.hpp"

#include <strings.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace onehop::standin {
namespace {

// What a thread last warned of. NCCL has one text for the process; a test reads it on the thread that failed.
thread_local char last[512] = "";

bool wants(const char* a, const char* b = "") {
  const char* level = std::getenv("NCCL_DEBUG");
  return level != nullptr && (strcasecmp(level, a) == 0 || strcasecmp(level, b) == 0);
}

void print(const char* level, const char* text) {
  std::printf("standin:%d:%d NCCL %s %s\n", getpid(), gettid(), level, text);
  std::fflush(stdout);
}

}  // namespace

void info(const char* format, ...) {
  if (!wants("INFO", "TRACE")) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  print("INFO", text);
}

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last, sizeof last, format, arguments);
  va_end(arguments);
  if (wants("WARN") || wants("INFO", "TRACE")) print("WARN", last);
}

const char* last_error() {
  return last;
}

}  // namespace onehop::standin
