#include "tools/onehop/tune_workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "tools/onehop/child.hpp"

namespace onehop::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStartDeadline = 120;  ///< seconds: CUDA and NCCL are slow to begin on a large machine

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    if (changes.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) all.push_back(std::string(name).append("=").append(value));
  return all;
}

}  // namespace

Result<std::string> Workers::start() {
  signal(SIGPIPE, SIG_IGN);
  const int count = setup_.one_process ? setup_.ranks : 1;
  for (int first = 0; first < setup_.ranks; first += count)
    if (const Status launched = launch(first, count); !launched) return launched.error();
  const auto id = ask("id", kStartDeadline, 1);
  if (!id) return id.error();
  const auto joined = ask("join " + id->front().substr(3), kStartDeadline);
  if (!joined) return joined.error();
  return joined->front().substr(std::strlen("machine "));
}

Status Workers::launch(int first, int count) {
  std::vector<std::string> words = {setup_.program, std::to_string(setup_.ranks), std::to_string(first),
                                    std::to_string(count)};
  if (!setup_.plugin.empty()) words.push_back(setup_.plugin);
  std::vector<std::string> variables = environment_with(setup_.environment);
  const std::vector<char*> argv = tool::pointers(words), environment = tool::pointers(variables);
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
    return Error{std::string("no pipe: ") + std::strerror(errno)};
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    if (setup_.quiet) dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    execve(argv[0], argv.data(), environment.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  if (pid < 0) return Error{std::string("no process: ") + std::strerror(errno)};
  processes_.push_back({pid, to[1], from[0], {}});
  return {};
}

void Workers::stop() {
  for (const Process& process : processes_) kill(process.pid, SIGKILL);
  for (const Process& process : processes_) {
    waitpid(process.pid, nullptr, 0);
    close(process.to);
    close(process.from);
  }
  processes_.clear();
}

Result<std::vector<std::string>> Workers::ask(const std::string& line, int deadline_s, size_t of_first) {
  const auto deadline = Clock::now() + std::chrono::seconds(deadline_s);
  const size_t asked = std::min(of_first, processes_.size());
  const auto failed = [&](size_t i, const std::string& what) {
    const std::string who = setup_.one_process ? "the process" : "rank " + std::to_string(i);
    stop();
    return Error{who + " " + what};
  };
  const std::string bytes = line + "\n";
  for (size_t i = 0; i < asked; ++i)
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = write(processes_[i].to, bytes.data() + sent, bytes.size() - sent);
      if (now < 0 && errno != EINTR) return failed(i, "has ended");
      if (now > 0) sent += static_cast<size_t>(now);
    }
  std::vector<std::string> answers(asked);
  for (size_t i = 0; i < asked; ++i) {
    Process& process = processes_[i];
    size_t end = 0;
    while ((end = process.unread.find('\n')) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd wait{process.from, POLLIN, 0};
      if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0)
        return failed(i, "did not answer within " + std::to_string(deadline_s) + " s");
      char buffer[4096];
      const ssize_t got = read(process.from, buffer, sizeof(buffer));
      if (got == 0 || (got < 0 && errno != EINTR)) return failed(i, "has ended");
      if (got > 0) process.unread.append(buffer, static_cast<size_t>(got));
    }
    answers[i] = process.unread.substr(0, end);
    process.unread.erase(0, end + 1);
    if (answers[i].starts_with("failed ")) return failed(i, "says: " + answers[i].substr(7));
  }
  return answers;
}

}  // namespace onehop::tune
