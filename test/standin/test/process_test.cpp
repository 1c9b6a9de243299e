// Jobs of several processes, and what NCCL's loader does in a fresh process.

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/folder.hpp"
#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// A process of the rank program, with pipes to it.
class Rank {
 public:
  Rank(int rank, int ranks, const Environment& environment, const char* mode) {
    int to[2], from[2];
    EXPECT_EQ(pipe(to), 0);
    EXPECT_EQ(pipe(from), 0);
    const std::string number = std::to_string(rank), count = std::to_string(ranks);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int descriptor : {to[0], to[1], from[0], from[1]}) close(descriptor);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      execl(RANK_PROGRAM, RANK_PROGRAM, number.c_str(), count.c_str(), mode, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
  }
  Rank(const Rank&) = delete;
  ~Rank() {
    fclose(to_);
    fclose(from_);
  }

  std::string read_line() {
    char line[1024] = "";
    if (fgets(line, sizeof line, from_) == nullptr) return "";
    output += line;
    return line;
  }
  void write_line(const std::string& line) {
    fputs(line.c_str(), to_);
    fflush(to_);
  }
  int wait() {
    while (!read_line().empty()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output;

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

/// Runs a job of several processes and returns what its ranks printed.
std::vector<std::string> run_job(int ranks, const Environment& environment = {}, const char* mode = nullptr) {
  std::vector<std::unique_ptr<Rank>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(std::make_unique<Rank>(rank, ranks, environment, mode));
  }
  std::string line;
  do {
    line = processes[0]->read_line();
  } while (!line.empty() && line.rfind("id ", 0) != 0);
  if (!line.empty()) {
    for (int rank = 1; rank < ranks; ++rank) processes[rank]->write_line(line.substr(3));
  }
  std::vector<std::string> outputs;
  for (const auto& process : processes) {
    EXPECT_EQ(process->wait(), 0);
    outputs.push_back(process->output);
  }
  return outputs;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Processes, ReduceAndShareMemory) {
  for (const std::string& output : run_job(4)) {
    EXPECT_NE(output.find("result 1024\npeer 1024\ndone\n"), std::string::npos) << output;
  }
}

TEST(Processes, MayExitWhileAStreamIsBlocked) {
  for (const std::string& output : run_job(2, {}, "leave-blocked")) {
    EXPECT_NE(output.find("result 32"), std::string::npos) << output;
  }
}

TEST(Processes, MoreThanCoresAreFine) {
  for (const std::string& output : run_job(8)) {
    EXPECT_NE(output.find("result 32768\n"), std::string::npos) << output;
  }
}

TEST(Loader, OpensTheNetPluginOfTheList) {
  const std::string output =
      run_job(1, {{"NCCL_NET_PLUGIN", std::string("missing,") + PLUGIN}, {"NCCL_DEBUG", "INFO"}})[0];
  EXPECT_EQ(count_of(output, "plugin loaded"), 1u) << output;
  EXPECT_EQ(count_of(output, "NET/Plugin: Could not find: missing"), 1u) << output;
  EXPECT_EQ(count_of(output, std::string("External NET plugin ") + PLUGIN + " is unsupported"), 1u) << output;
}

TEST(Loader, MakesAFileNameOfAPlainName) {
  const onehop::test::Folder folder;
  std::filesystem::copy_file(PLUGIN, folder.path() + "/libnccl-net-probe.so");
  const char* path = std::getenv("LD_LIBRARY_PATH");
  const std::string paths = folder.path() + (path != nullptr ? std::string(":") + path : "");
  EXPECT_EQ(
      count_of(run_job(1, {{"NCCL_NET_PLUGIN", "probe"}, {"LD_LIBRARY_PATH", paths}})[0], "plugin loaded"),
      1u);
}

TEST(Loader, OpensTheEnvironmentPluginFirst) {
  const std::string output = run_job(1, {{"NCCL_ENV_PLUGIN", PLUGIN}})[0];
  EXPECT_EQ(output.rfind("plugin loaded\nid ", 0), 0u) << output;
}

TEST(Loader, OpensNothingForNone) {
  EXPECT_EQ(count_of(run_job(1, {{"NCCL_NET_PLUGIN", "none"}, {"NCCL_DEBUG", "INFO"}})[0], "NET/Plugin"), 0u);
}

TEST(Loader, ReadsTheConfigurationFile) {
  const onehop::test::Folder folder;
  const std::string file = folder.path() + "/nccl.conf";
  std::ofstream(file) << "# comment\nNCCL_NET_PLUGIN=" << PLUGIN << "\n";
  EXPECT_EQ(count_of(run_job(1, {{"NCCL_CONF_FILE", file}})[0], "plugin loaded"), 1u);
  EXPECT_EQ(count_of(run_job(1, {{"NCCL_CONF_FILE", file}, {"NCCL_NET_PLUGIN", "none"}})[0], "plugin loaded"),
            0u);
}

}  // namespace
}  // namespace onehop::standin
