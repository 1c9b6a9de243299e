// Which libnccl a command would load, as well as that can be known from outside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/onehop/environment.hpp"

namespace onehop::tool {

struct FoundNccl {
  std::string path;  ///< without symbolic links
  std::string how;   ///< "LD_LIBRARY_PATH", "the Python package nvidia.nccl of /usr/bin/python3", ...
};

/// What `command` (as given to exec) would load. A program that is linked to libnccl says so itself; else
/// all that it may load by what is set and installed.
std::vector<FoundNccl> find_nccl(const std::vector<std::string>& command, const Environment&);

/// Every libnccl that programs of this environment may load.
std::vector<FoundNccl> find_every_nccl(const Environment&);

/// Kinds of plugins ("net", "tuner", "profiler") for which NCCL would find a library of the default name.
std::vector<std::string> default_plugins(const Environment&);

/// The file that exec would run; empty if there is none.
std::string program_of(const std::string& name, const Environment&);

}  // namespace onehop::tool
