// Files that the settings name and onehop writes: the log and the statistics.
#pragma once

#include <cstdio>
#include <string>

#include "plugin/result.hpp"

namespace onehop {

/// `path` with this process's id for each %p.
std::string path_of_process(std::string path);

enum class WriteMode { kAppend, kReplace };

/// Opens a file for writing, or makes it (rights 0644, less the umask). Where others may make files too, as
/// in /tmp, they could have put something there before: a symbolic link is not followed, a file with a second
/// name not written to, and a FIFO without a reader not waited for.
Result<std::FILE*> open_output_file(const std::string& path, WriteMode);

}  // namespace onehop
