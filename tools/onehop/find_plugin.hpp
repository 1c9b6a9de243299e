// Where libnccl-net-onehop.so is: beside this command, as it was built or installed.
#pragma once

#include <string>

#include "plugin/result.hpp"

namespace onehop::tool {

/// Its absolute path. `named`: what the user says; empty: look for it.
Result<std::string> find_plugin(const std::string& named);

}  // namespace onehop::tool
