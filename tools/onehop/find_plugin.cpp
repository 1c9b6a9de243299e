#include "tools/onehop/find_plugin.hpp"

#include <filesystem>

#include "tools/onehop/child.hpp"

namespace onehop::tool {

Result<std::string> find_plugin(const std::string& named) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!named.empty()) {
    const fs::path path = fs::absolute(named, error).lexically_normal();
    if (error || !fs::is_regular_file(path, error)) return Error{"there is no file " + named};
    return path.string();
  }
  const fs::path folder = fs::path(own_path()).parent_path();
  for (const char* place : {".", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../plugin"}) {
    const fs::path path = (folder / place / "libnccl-net-onehop.so").lexically_normal();
    if (fs::is_regular_file(path, error)) return path.string();
  }
  return Error{"libnccl-net-onehop.so was not found beside this command; name it with --plugin"};
}

}  // namespace onehop::tool
