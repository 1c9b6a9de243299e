// The processes of one side, as the command sees them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/bench/channel.hpp"
#include "tools/onehop/bench/side_spec.hpp"

namespace onehop::bench {

/// What all sides have in common.
struct Layout {
  int ranks = 0, gpus = 0;
  int ranks_per_process = 1;
  bool group = false;
  size_t memory = 0;
  std::string plugin;  ///< what NCCL_NET_PLUGIN names on onehop's side
  bool verbose = false;

  int processes() const { return (ranks + ranks_per_process - 1) / ranks_per_process; }
  int ranks_per_gpu() const { return gpus > 0 ? (ranks + gpus - 1) / gpus : ranks; }
};

class Side {
 public:
  Side(SideSpec spec, const Layout& layout) : spec_(std::move(spec)), layout_(layout) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  /// Ends its processes.
  ~Side();

  const SideSpec& spec() const { return spec_; }

  Status start();
  /// Sends a command to every process; collect() must follow.
  void tell(const Json& command);
  /// The answers, one for each process. An error if a process ends or says that it failed, or if an answer is
  /// missing at the deadline; `step` is what that error calls the work.
  Result<std::vector<Json>> collect(const std::string& step, double deadline_s);
  Result<std::vector<Json>> ask(const Json& command, const std::string& step, double deadline_s);
  /// The rank-dependent part of the command "open".
  Result<std::vector<Json>> id(double deadline_s);
  void tell_open(const std::string& id);

 private:
  struct Process {
    pid_t pid = -1;
    std::unique_ptr<Channel> channel;
    int output = -1;  ///< a file with what it wrote
    int first = 0;    ///< its first rank
    bool answered = false, lost = false;
    Json answer;
  };

  Status start(Process& process);
  void apply_environment() const;
  std::string ranks_of(const Process& process) const;
  /// Why a process that is gone is gone.
  std::string describe_end(Process& process) const;
  std::string last_lines(const Process& process) const;

  const SideSpec spec_;
  const Layout& layout_;
  std::vector<Process> processes_;
};

}  // namespace onehop::bench
