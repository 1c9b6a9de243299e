#include "tools/onehop/environment.hpp"

#include <fstream>

namespace onehop::tool {
namespace {

void read_configuration(const std::string& path, Environment& environment) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == std::string::npos || equals == 0) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
}

}  // namespace

Environment environment_of(const char* const* entries) {
  Environment environment;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string entry = *entries;
    if (const size_t equals = entry.find('='); equals != std::string::npos)
      environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Environment with_configuration_files(Environment environment, const std::string& root) {
  const std::string file = value_of(environment, "NCCL_CONF_FILE"), home = value_of(environment, "HOME");
  if (!file.empty())
    read_configuration(file, environment);
  else if (!home.empty())
    read_configuration(home + "/.nccl.conf", environment);
  read_configuration(root + "/etc/nccl.conf", environment);
  return environment;
}

std::vector<std::string> parts_of(const std::string& list, const std::string& separators) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find_first_of(separators, at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace onehop::tool
