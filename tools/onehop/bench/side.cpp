#include "tools/onehop/bench/side.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace onehop::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Takes out of a list the entries that name onehop: a side of stock NCCL must not load it.
void remove_onehop(const char* variable, const char* dividers) {
  const char* value = std::getenv(variable);
  if (value == nullptr || std::strstr(value, "onehop") == nullptr) return;
  const std::string list = value;
  std::string kept;
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find_first_of(dividers, start), list.size());
    const std::string entry = list.substr(start, end - start);
    if (!entry.empty() && entry.find("onehop") == std::string::npos)
      kept += (kept.empty() ? "" : ",") + entry;
    start = end + 1;
  }
  if (kept.empty())
    unsetenv(variable);
  else
    setenv(variable, kept.c_str(), 1);
}

}  // namespace

Side::~Side() {
  for (Process& process : processes_) {
    if (process.pid > 0) {
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
    if (process.output >= 0) close(process.output);
  }
}

Status Side::start() {
  for (int i = 0; i < layout_.processes(); ++i) {
    Process& process = processes_.emplace_back();
    process.first = i * layout_.ranks_per_process;
    if (Status started = start(process); !started) return started;
  }
  return {};
}

Status Side::start(Process& process) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("socketpair: ") + std::strerror(errno)};
  process.channel = std::make_unique<Channel>(ends[0]);
  if (!layout_.verbose) process.output = memfd_create("output", MFD_CLOEXEC);
  process.pid = fork();
  if (process.pid < 0) {
    close(ends[1]);
    return Error{std::string("fork: ") + std::strerror(errno)};
  }
  if (process.pid == 0) {
    apply_environment();
    // Standard output belongs to the command's own table.
    dup2(process.output >= 0 ? process.output : STDERR_FILENO, STDOUT_FILENO);
    if (process.output >= 0) dup2(process.output, STDERR_FILENO);
    fcntl(ends[1], F_SETFD, 0);
    const std::string fd = std::to_string(ends[1]);
    execl("/proc/self/exe", "onehop", "bench-process", fd.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  return {};
}

void Side::apply_environment() const {
  remove_onehop("NCCL_NET_PLUGIN", ",");
  remove_onehop("NCCL_TUNER_PLUGIN", ",");
  remove_onehop("NCCL_PROFILER_PLUGIN", ",");
  remove_onehop("LD_PRELOAD", ": ");
  if (spec_.onehop) setenv("NCCL_NET_PLUGIN", layout_.plugin.c_str(), 1);
  if (layout_.ranks_per_gpu() > 1) {
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    // Else streams share hardware queues, and a kernel may wait behind one that waits for it.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  }
  for (const auto& [name, value] : spec_.settings) setenv(name.c_str(), value.c_str(), 1);
}

void Side::tell(const Json& command) {
  for (Process& process : processes_) {
    process.answered = false;
    process.lost = !process.channel->send(command);
  }
}

Result<std::vector<Json>> Side::collect(const std::string& step, double deadline_s) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_s));
  const std::string where = step + " (" + spec_.name + "): ";
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Process*> asked;
    for (Process& process : processes_) {
      if (process.lost) return Error{where + ranks_of(process) + describe_end(process) + last_lines(process)};
      if (process.answered) continue;
      waiting.push_back({process.channel->fd(), POLLIN, 0});
      asked.push_back(&process);
    }
    if (waiting.empty()) break;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      std::string late;
      for (const Process* process : asked) late.append(late.empty() ? "" : ", ").append(ranks_of(*process));
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g s", deadline_s);
      std::string why = where;
      why.append("not finished after ").append(seconds).append("; no answer from ").append(late);
      return Error{why.append(last_lines(*asked.front()))};
    }
    poll(waiting.data(), waiting.size(), static_cast<int>(std::min<long long>(left, 1000)));
    for (size_t i = 0; i < asked.size(); ++i) {
      Process& process = *asked[i];
      if (waiting[i].revents == 0) continue;
      if (!process.channel->read()) {
        process.lost = true;
      } else if (std::optional<Json> answer = process.channel->next()) {
        if (answer->contains("error"))
          return Error{where + ranks_of(process) + ": " + answer->value("error", "") + last_lines(process)};
        process.answer = std::move(*answer);
        process.answered = true;
      }
    }
  }
  std::vector<Json> answers;
  for (Process& process : processes_) answers.push_back(std::move(process.answer));
  return answers;
}

Result<std::vector<Json>> Side::ask(const Json& command, const std::string& step, double deadline_s) {
  tell(command);
  return collect(step, deadline_s);
}

Result<std::vector<Json>> Side::id(double deadline_s) {
  // Only the first process makes one; the others have nothing to answer.
  for (Process& process : processes_) process.answered = true;
  processes_.front().answered = false;
  processes_.front().lost = !processes_.front().channel->send({{"do", "id"}});
  return collect("making an id", deadline_s);
}

void Side::tell_open(const std::string& id) {
  for (Process& process : processes_) {
    std::vector<int> devices;
    const int end = std::min(process.first + layout_.ranks_per_process, layout_.ranks);
    for (int rank = process.first; rank < end; ++rank) devices.push_back(rank % layout_.gpus);
    process.answered = false;
    process.lost = !process.channel->send({{"do", "open"},
                                           {"id", id},
                                           {"ranks", layout_.ranks},
                                           {"first", process.first},
                                           {"devices", devices},
                                           {"group", layout_.group},
                                           {"memory", layout_.memory},
                                           {"onehop", spec_.onehop},
                                           {"plugin", layout_.plugin}});
  }
}

std::string Side::ranks_of(const Process& process) const {
  const int last = std::min(process.first + layout_.ranks_per_process, layout_.ranks) - 1;
  if (last <= process.first) return "rank " + std::to_string(process.first);
  return "ranks " + std::to_string(process.first) + " to " + std::to_string(last);
}

std::string Side::describe_end(Process& process) const {
  int status = 0;
  // It has closed its channel, so it is gone, or about to be.
  for (int i = 0; i < 200; ++i) {
    const pid_t ended = waitpid(process.pid, &status, WNOHANG);
    if (ended == process.pid) {
      process.pid = -1;
      if (WIFSIGNALED(status)) return std::string(" was ended by a signal: ") + strsignal(WTERMSIG(status));
      return " ended with exit code " + std::to_string(WEXITSTATUS(status));
    }
    usleep(10'000);
  }
  return " closed its connection";
}

std::string Side::last_lines(const Process& process) const {
  if (process.output < 0) return "";
  constexpr off_t kLength = 1500;
  char text[kLength];
  const off_t end = lseek(process.output, 0, SEEK_END);
  const off_t start = std::max<off_t>(end - kLength, 0);
  const ssize_t got = pread(process.output, text, static_cast<size_t>(end - start), start);
  if (got <= 0) return "";
  std::string lines(text, static_cast<size_t>(got));
  if (start > 0) lines.erase(0, lines.find('\n') + 1);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  return "\nthe last that it wrote:\n" + lines;
}

}  // namespace onehop::bench
