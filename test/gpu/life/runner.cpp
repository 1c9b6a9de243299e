#include "test/gpu/life/runner.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "test/gpu/life/rank.hpp"

extern char** environ;

namespace onehop::test {
namespace {

constexpr double kGrace = 5;     ///< for the others, after one process failed
constexpr double kReaping = 15;  ///< a killed process may have to leave the driver first

std::vector<std::string> environment_of(const Job& job, int descriptor) {
  std::map<std::string, std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    const size_t equals = entry.find('=');
    all[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  if (job.stock) all.erase("NCCL_NET_PLUGIN");
  // Several ranks of one process on one GPU: no stream may wait behind another in a hardware queue.
  all["CUDA_DEVICE_MAX_CONNECTIONS"] = "32";
  all["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
  // So that the kernels of all ranks fit on one GPU at once, whatever NCCL would take.
  all.try_emplace("NCCL_MAX_NCHANNELS", "8");
  all.try_emplace("NCCL_DEBUG", "WARN");
  all[Shared::kDescriptor] = std::to_string(descriptor);
  for (const auto& [name, value] : job.environment) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::string log_of(const Job& job, const std::string& logs, int process) {
  return logs + "/" + job.name + "." + std::to_string(process) + ".log";
}

pid_t start(const Job& job, int process, const std::string& logs, int descriptor) {
  std::vector<std::string> arguments = {"/proc/self/exe",
                                        "--process",
                                        job.case_name,
                                        std::to_string(process),
                                        std::to_string(job.processes),
                                        std::to_string(job.threads),
                                        std::to_string(static_cast<int>(job.deadline_s + kGrace)),
                                        job.argument};
  std::vector<std::string> variables = environment_of(job, descriptor);
  const std::vector<char*> argv = pointers(arguments), environment = pointers(variables);
  const std::string log = log_of(job, logs, process);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  fcntl(descriptor, F_SETFD, 0);
  execve(argv[0], argv.data(), environment.data());
  _exit(127);
}

std::string first_failure(const std::string& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("FAILED: ", 0) == 0) return line.substr(8);
    if (!line.empty()) last = line;
  }
  return last;
}

std::string code_text(int code) {
  return code >= 128 ? "signal " + std::to_string(code - 128) : "exit code " + std::to_string(code);
}

class Running {
 public:
  Running(const Job& job, const std::string& logs) : job_(job), logs_(logs), codes_(processes(), -1) {
    descriptor_ = memfd_create("onehop-life", MFD_CLOEXEC);
    must(descriptor_ >= 0 && ftruncate(descriptor_, sizeof(Shared)) == 0, "memfd_create");
    shared_ = Shared::map(descriptor_);
    must(shared_ != nullptr, "mmap");
    signalled_us_.resize(processes());
    for (int p = 0; p < job_.processes; ++p) pids_.push_back(start(job_, p, logs_, descriptor_));
  }
  Running(const Running&) = delete;
  ~Running() {
    munmap(shared_, sizeof(Shared));
    close(descriptor_);
  }

  JobResult wait() {
    const double begin = now_s();
    double deadline = begin + job_.deadline_s;
    bool ended = false;
    while (!reap(deadline) && !ended) {
      signal_those_that_wait();
      if (now_s() > deadline) {
        for (size_t p = 0; p < processes(); ++p)
          if (codes_[p] == -1) late_ += (late_.empty() ? "" : ", ") + std::to_string(p);
        ended = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill_all();
    JobResult result;
    result.job = &job_;
    result.seconds = now_s() - begin;
    result.why = verdict();
    result.passed = result.why.empty();
    for (uint32_t i = 0; i < std::min<uint32_t>(shared_->figure_count, Shared::kFigures); ++i) {
      const Shared::Figure& f = shared_->figures[i];
      const auto [at, is_new] = result.figures.emplace(f.name, f.value);
      if (!is_new) at->second = std::max(at->second, f.value);
    }
    for (uint32_t i = 0; i < std::min<uint32_t>(shared_->note_count, Shared::kNotes); ++i)
      result.notes.emplace_back(shared_->notes[i]);
    return result;
  }

 private:
  size_t processes() const { return static_cast<size_t>(job_.processes); }
  int wanted(size_t p) const {
    if (static_cast<int>(p) == job_.killed) return 128 + SIGKILL;
    return job_.terminated ? 128 + SIGTERM : 0;
  }

  /// True when all have ended. After the first failure the others get a moment: they may wait for it.
  bool reap(double& deadline) {
    bool all = true;
    for (size_t p = 0; p < processes(); ++p) {
      int status = 0;
      if (codes_[p] != -1) continue;
      if (waitpid(pids_[p], &status, WNOHANG) != pids_[p]) {
        all = false;
        continue;
      }
      codes_[p] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      const uint64_t left = shared_->processes[p].leaves_at_us, since = left != 0 ? left : signalled_us_[p];
      if (since != 0) {
        const double took = 1e-6 * static_cast<double>(now_us() - since);
        shared_->figure("end of the process, s", took);
        exit_s_ = std::max(exit_s_, took);
      }
      if (codes_[p] != wanted(p) && first_.empty()) {
        first_ = std::to_string(p);
        deadline = std::min(deadline, now_s() + kGrace);
      }
    }
    return all;
  }

  void signal_those_that_wait() {
    for (size_t p = 0; p < processes(); ++p) {
      if (codes_[p] != -1 || signalled_us_[p] != 0 || shared_->processes[p].wants_signal == 0) continue;
      signalled_us_[p] = now_us();
      kill(pids_[p], SIGTERM);
    }
  }

  void kill_all() {
    for (size_t p = 0; p < processes(); ++p)
      if (codes_[p] == -1) kill(-pids_[p], SIGKILL);
    double deadline = now_s() + kReaping;
    double ignored = 1e18;
    while (!reap(ignored) && now_s() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  std::string verdict() const {
    std::string why;
    if (!first_.empty()) {
      const auto p = std::stoul(first_);
      why = "process " + first_ + ": " + code_text(codes_[p]) + ": " +
            first_failure(log_of(job_, logs_, static_cast<int>(p)));
    } else if (!late_.empty()) {
      why = "not done in time: process " + late_;
    }
    if (!late_.empty()) {
      for (int r = 0; r < std::min(job_.ranks(), Shared::kRanks); ++r)
        why += "; rank " + std::to_string(r) + " at \"" + shared_->steps[r] + "\"";
    }
    for (size_t p = 0; p < processes(); ++p)
      if (codes_[p] == -1) why += "; process " + std::to_string(p) + " cannot be killed";
    if (why.empty() && job_.exit_s > 0 && exit_s_ > job_.exit_s)
      why = "a process took " + std::to_string(exit_s_) + " s to end";
    return why;
  }

  const Job& job_;
  const std::string logs_;
  int descriptor_ = -1;
  Shared* shared_ = nullptr;
  std::vector<pid_t> pids_;
  std::vector<int> codes_;
  std::vector<uint64_t> signalled_us_;
  double exit_s_ = 0;
  std::string first_, late_;
};

}  // namespace

JobResult run(const Job& job, const std::string& logs) {
  return Running(job, logs).wait();
}

int be_process(int argc, char** argv) {
  must(argc == 8, "a process of a job has eight arguments");
  const std::string name = argv[2];
  const int process = std::atoi(argv[3]), processes = std::atoi(argv[4]), threads = std::atoi(argv[5]);
  alarm(static_cast<unsigned>(std::atoi(argv[6])));
  const char* descriptor = std::getenv(Shared::kDescriptor);
  Shared* shared = descriptor != nullptr ? Shared::map(std::atoi(descriptor)) : nullptr;
  must(shared != nullptr, "this program starts its processes itself");
  const auto found = cases().find(name);
  must(found != cases().end(), "no case " + name);
  const auto part = [&](int thread) {
    Rank rank(*shared, process * threads + thread, processes * threads, process, argv[7]);
    found->second(rank);
    rank.step("done");
  };
  if (threads == 1) {
    part(0);
    return 0;
  }
  std::vector<std::thread> others;
  for (int t = 0; t < threads; ++t) others.emplace_back(part, t);
  for (std::thread& other : others) other.join();
  return 0;
}

}  // namespace onehop::test
