// The environment that a command would get, as NCCL would read it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace onehop::tool {

using Environment = std::map<std::string, std::string>;

Environment environment_of(const char* const* entries);

/// Empty if it is not set: nothing here tells the two apart, and nor does NCCL.
std::string value_of(const Environment&, const std::string& name);

/// Adds what NCCL's configuration files set and the environment does not: NCCL_CONF_FILE or ~/.nccl.conf,
/// then /etc/nccl.conf. `root` is put in front of /etc, for tests.
Environment with_configuration_files(Environment, const std::string& root = "");

/// What stands between separators; empty parts are left out.
std::vector<std::string> parts_of(const std::string& list, const std::string& separators);

}  // namespace onehop::tool
