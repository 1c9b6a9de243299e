#include "tools/onehop/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <thread>

namespace onehop::tool {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  std::vector<std::string> arguments = command, variables;
  for (const auto& [name, value] : environment) variables.emplace_back(name).append("=").append(value);
  execvpe(command[0].c_str(), pointers(arguments).data(), pointers(variables).data());
  _exit(127);
}

/// All that comes until the end or the deadline; false at the deadline.
bool read_until(int fd, Clock::time_point deadline, std::string& text) {
  constexpr size_t kMost = 16 << 20;
  while (text.size() < kMost) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0) return false;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return true;
}

/// It has closed its output, and is about to end.
bool ends_until(pid_t child, Clock::time_point deadline, int& status) {
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command, const Environment& environment,
                              std::chrono::milliseconds deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{std::string("pipe: ") + std::strerror(errno)};
  const pid_t child = fork();
  if (child == 0) become(command, environment, ends[1]);
  close(ends[1]);
  std::string text;
  const Clock::time_point end = Clock::now() + deadline;
  bool in_time = child > 0 && read_until(ends[0], end, text);
  close(ends[0]);
  if (child < 0) return Error{std::string("fork: ") + std::strerror(errno)};
  int status = 0;
  if (!(in_time = in_time && ends_until(child, end, status))) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (!in_time) return Error{"it did not answer within " + std::to_string(deadline.count() / 1000) + " s"};
  if (WIFSIGNALED(status))
    return Error{std::string("it ended with the signal ") + strsignal(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0)
    return Error{"it ended with exit code " + std::to_string(WEXITSTATUS(status))};
  return text;
}

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "onehop";
}

}  // namespace onehop::tool
