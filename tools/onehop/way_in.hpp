// By which variable onehop gets into a job: from the releases of NCCL that the job may load, and from what
// the site has set already. A pure function.
#pragma once

#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/environment.hpp"
#include "tools/onehop/nccl_version.hpp"

namespace onehop::tool {

struct Situation {
  std::vector<NcclVersion> versions = {};  ///< of every libnccl that the command may load
  Environment environment = {};            ///< with NCCL's configuration files
  std::string plugin;                      ///< absolute path of libnccl-net-onehop.so
  /// Plugins that NCCL loads without being told, since a library of the default name is in the search path:
  /// "net", "tuner", "profiler".
  std::vector<std::string> defaults = {};
  bool preload = false;  ///< asked for
};

struct WayIn {
  std::vector<std::pair<std::string, std::string>> set = {};  ///< variables, with their whole new values
  std::string why;
};

/// An Error says why nothing can be set: above all a release that onehop does not know.
Result<WayIn> choose_way_in(const Situation&);

}  // namespace onehop::tool
