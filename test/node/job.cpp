#include "test/node/job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "test/folder.hpp"
#include "test/node/patience.hpp"

namespace onehop::node {
namespace {

using Clock = std::chrono::steady_clock;
using test::Folder;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Environment environment_of(const Job& job, int rank, const Folder& folder) {
  Environment environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    const size_t equals = entry.find('=');
    environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  std::erase_if(environment, [](const auto& variable) {
    for (const char* prefix : {"NCCL_", "CUDA_", "ONEHOP_", "LD_PRELOAD"})
      if (variable.first.rfind(prefix, 0) == 0) return true;
    return false;
  });
  const auto load_of = job.load_of.find(rank);
  const Load load = load_of != job.load_of.end() ? load_of->second : job.load;
  if (load == Load::kNetPlugin || load == Load::kBoth) environment["NCCL_NET_PLUGIN"] = PLUGIN;
  if (load == Load::kPreload || load == Load::kBoth) environment["LD_PRELOAD"] = PLUGIN;
  environment["ONEHOP_STANDIN_DEVICES"] = "16";
  environment["ONEHOP_MEASURE"] =
      "off";  // times of the stand-in say nothing, and what is taken must be known
  if (is_confined(job)) environment["ONEHOP_STANDIN_FOLDER"] = folder.path();
  environment["ONEHOP_STATS_FILE"] = folder / ("stats." + std::to_string(rank));
  for (const auto& [name, value] : job.environment) environment[name] = value;
  if (const auto of = job.of.find(rank); of != job.of.end())
    for (const auto& [name, value] : of->second) environment[name] = value;
  return environment;
}

pid_t start(const Job& job, int rank, const Folder& folder) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment_of(job, rank, folder)) variables.push_back(name + "=" + value);
  std::vector<std::string> arguments = {RANK_PROGRAM,         job.scenario,
                                        std::to_string(rank), std::to_string(job.ranks),
                                        folder.path(),        job.argument};
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  const std::vector<char*> environment = pointers(variables), argv = pointers(arguments);
  const std::string number = std::to_string(rank), output = folder / ("out." + number),
                    errors = folder / ("err." + number);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(open(output.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), STDOUT_FILENO);
  dup2(open(errors.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), STDERR_FILENO);
  const auto confined = job.confined.find(rank);
  enter(confined != job.confined.end() ? confined->second : job.confinement);
  if (chdir(folder.path().c_str()) == 0) execve(argv[0], argv.data(), environment.data());
  _exit(127);
}

/// Exit codes. After the first failure that was not expected the others get two seconds: they may wait for a
/// rank that is gone.
std::vector<int> wait_for_all(const std::vector<pid_t>& pids, const Job& job) {
  std::vector<int> codes(pids.size(), -1);
  auto deadline = Clock::now() + std::chrono::seconds(kPatience * job.deadline_s);
  size_t running = pids.size();
  while (running > 0) {
    for (size_t r = 0; r < pids.size(); ++r) {
      int status = 0;
      if (codes[r] != -1 || waitpid(pids[r], &status, WNOHANG) != pids[r]) continue;
      --running;
      codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (codes[r] != job.code_for(r) && job.code != kAnyCode)
        deadline = std::min(deadline, Clock::now() + std::chrono::seconds(2));
    }
    if (Clock::now() > deadline)
      for (size_t r = 0; r < pids.size(); ++r)
        if (codes[r] == -1) kill(pids[r], SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return codes;
}

/// The number behind `"name":` after position `at`.
uint64_t number_of(const std::string& json, const std::string& name, size_t at) {
  const std::string key = '"' + name + "\":";
  const size_t found = json.find(key, at);
  return found == std::string::npos ? 0 : std::stoull(json.substr(found + key.size()));
}

}  // namespace

std::vector<std::string> Process::log() const {
  std::vector<std::string> lines;
  std::istringstream text(errors);
  for (std::string line; std::getline(text, line);) {
    const size_t name = line.find("] onehop "), colon = line.find(": ", name);
    if (name != std::string::npos && colon != std::string::npos) lines.push_back(line.substr(colon + 2));
  }
  return lines;
}

std::vector<std::string> Process::log(const std::string& part) const {
  std::vector<std::string> lines = log();
  std::erase_if(lines, [&](const std::string& line) { return line.find(part) == std::string::npos; });
  return lines;
}

std::map<std::string, uint64_t> Process::expected() const {
  std::map<std::string, uint64_t> calls;
  const size_t at = output.find("expected");
  if (at == std::string::npos) return calls;
  std::istringstream words(output.substr(at, output.find('\n', at) - at));
  for (std::string word; words >> word;)
    if (const size_t equals = word.find('='); equals != std::string::npos)
      calls[word.substr(0, equals)] = std::stoull(word.substr(equals + 1));
  return calls;
}

std::map<std::string, uint64_t> Process::counted() const {
  std::map<std::string, uint64_t> calls;
  const size_t totals = statistics.find("\"totals\"");
  if (totals == std::string::npos) return calls;
  for (const char* name : {"taken", "type", "operator", "size", "slower", "empty", "declined", "switched off",
                           "not inspected"}) {
    std::string key = name;
    for (char& c : key)
      if (c == ' ') c = '_';
    if (const uint64_t count = number_of(statistics, name, totals); count != 0) calls[key] = count;
  }
  return calls;
}

std::vector<std::string> Outcome::log(const std::string& part) const {
  std::vector<std::string> lines;
  for (const Process& process : processes)
    for (std::string& line : process.log(part)) lines.push_back(std::move(line));
  return lines;
}

bool is_confined(const Job& job) {
  return job.confinement.confines() || !job.confined.empty();
}

Outcome run(const Job& job) {
  const Folder folder;
  // Other users' processes may write there too.
  EXPECT_EQ(chmod(folder.path().c_str(), is_confined(job) ? 0777 : 0700), 0);
  for (const auto& [name, text] : job.files) std::ofstream(folder / name) << text;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < job.ranks; ++rank) pids.push_back(start(job, rank, folder));
  if (job.meanwhile) job.meanwhile(pids, folder.path());
  const std::vector<int> codes = wait_for_all(pids, job);
  Outcome outcome;
  for (size_t r = 0; r < codes.size(); ++r) {
    const std::string number = std::to_string(r);
    outcome.processes.push_back({codes[r], read_file(folder / ("out." + number)),
                                 read_file(folder / ("err." + number)),
                                 read_file(folder / ("stats." + number))});
    for (const char* name : {"out.", "err.", "stats."}) std::filesystem::remove(folder / (name + number));
    EXPECT_TRUE(codes[r] == job.code_for(r) || job.code == kAnyCode)
        << "code " << codes[r] << " in place of " << job.code_for(r) << '\n'
        << job.scenario << ", rank " << r << " of " << job.ranks << " wrote:\n"
        << outcome.processes.back().errors;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().rfind("standin", 0) != 0)
      outcome.files[entry.path().filename()] = read_file(entry.path());
  return outcome;
}

Outcome run_counted(const Job& job) {
  Outcome outcome = run(job);
  for (const Process& process : outcome.processes) {
    EXPECT_FALSE(process.expected().empty()) << process.output;
    EXPECT_EQ(process.counted(), process.expected()) << process.statistics;
  }
  return outcome;
}

}  // namespace onehop::node
