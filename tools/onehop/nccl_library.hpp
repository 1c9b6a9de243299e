// What is to be known of a libnccl file: its release, and whether onehop can take it over.
#pragma once

#include <optional>
#include <string>

#include "plugin/result.hpp"
#include "tools/onehop/nccl_version.hpp"

namespace onehop::tool {

struct NcclLibrary {
  std::string path;
  NcclVersion version = {};
  std::string refused;  ///< why its functions cannot be taken over; empty: they can
};

/// Opens and patches the library in this process, with the plugin's own code. The process is then of no other
/// use.
Result<NcclLibrary> examine_here(const std::string& path);

/// The same in a process of its own, by `onehop examine nccl`. `program`: the onehop command.
Result<NcclLibrary> examine(const std::string& path, const std::string& program);

}  // namespace onehop::tool
