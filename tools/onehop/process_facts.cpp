#include "tools/onehop/process_facts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/onehop/files.hpp"
#include "tools/onehop/live_statistics.hpp"

namespace onehop::tool {

ProcessFacts read_process(int pid, const std::string& proc) {
  namespace fs = std::filesystem;
  ProcessFacts facts;
  facts.pid = pid;
  const fs::path process = fs::path(proc) / std::to_string(pid);
  std::error_code error;
  if (!fs::exists(process, error)) {
    facts.trouble = "there is no such process";
    return facts;
  }
  std::ifstream maps(process / "maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line); ++lines) {
    const size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const std::string path = line.substr(at), name = path.substr(path.rfind('/') + 1);
    if (name.rfind("libnccl-net-onehop", 0) == 0) facts.plugin = path;
    if (name.rfind("libnccl.so", 0) == 0 &&
        std::find(facts.nccl.begin(), facts.nccl.end(), path) == facts.nccl.end())
      facts.nccl.push_back(path);
  }
  if (lines == 0) {
    facts.trouble = "it may not be looked into; try as its user, or as root";
    return facts;
  }
  std::vector<std::string> entries;
  for (std::string& entry : parts_of(bytes_of_file(process / "environ"), std::string(1, '\0'))) {
    if (entry.rfind("NCCL_", 0) == 0 || entry.rfind("ONEHOP_", 0) == 0 || entry.rfind("LD_PRELOAD=", 0) == 0)
      entries.push_back(std::move(entry));
  }
  std::vector<const char*> pointers;
  pointers.reserve(entries.size() + 1);
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  facts.environment = environment_of(pointers.data());
  facts.statistics = live_statistics(pid, proc);
  return facts;
}

}  // namespace onehop::tool
