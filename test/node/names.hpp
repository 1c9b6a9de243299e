// Names that outlive processes, of which a job must leave none.
#pragma once

#include <set>
#include <string>

namespace onehop::node {

/// onehop's files in /dev/shm and /tmp (tests make folders there, and no files), and its abstract sockets.
std::set<std::string> names();

/// One that is there now, was not `before`, and stays: other jobs may run beside this one, and theirs go.
/// Empty: none.
std::string new_name(const std::set<std::string>& before);

}  // namespace onehop::node
