#include "test/object/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace onehop::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Its own process group, so that what it left running ends with it.
int wait_for(pid_t child, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return 2000;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> Outcome::lines() const {
  return lines_of(out);
}

Outcome run(const std::vector<std::string>& command, const Environment& variables,
            std::chrono::seconds limit) {
  const Folder folder;
  const std::string out = folder / "out", err = folder / "err";
  std::vector<std::string> arguments = command, environment{"PATH=/usr/bin:/bin", "HOME=" + folder.path()};
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  // What the sanitizers' runtimes are told, where the programs were built with them.
  for (const char* name : {"ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"})
    if (const char* value = std::getenv(name); value != nullptr)
      environment.push_back(std::string(name) + "=" + value);
  const auto argv = pointers(arguments), envp = pointers(environment);

  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    const int in_file = open("/dev/null", O_RDONLY), out_file = open(out.c_str(), O_WRONLY | O_CREAT, 0600),
              err_file = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(in_file, 0);
    dup2(out_file, 1);
    dup2(err_file, 2);
    for (const int file : {in_file, out_file, err_file}) close(file);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  if (child < 0) throw std::runtime_error("fork failed");
  Outcome outcome;
  outcome.status = wait_for(child, limit);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  for (const std::string& line : lines_of(text)) count += line.find(part) != std::string::npos;
  return count;
}

}  // namespace onehop::test
