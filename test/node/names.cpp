#include "test/node/names.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace onehop::node {

std::set<std::string> names() {
  std::set<std::string> all;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none))
      if (const std::string name = entry.path().filename();
          name.find("onehop") != std::string::npos && !entry.is_directory(none))
        all.insert(entry.path());
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (const size_t at = line.find('@'); at != std::string::npos && line.find("onehop") != std::string::npos)
      all.insert(line.substr(at));
  return all;
}

std::string new_name(const std::set<std::string>& before) {
  using Clock = std::chrono::steady_clock;
  std::set<std::string> left;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (bool first = true;; first = false) {
    const std::set<std::string> now = names();
    if (first) left = now;
    std::erase_if(left,
                  [&](const std::string& name) { return before.contains(name) || !now.contains(name); });
    if (left.empty()) return "";
    if (Clock::now() > deadline) return *left.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace onehop::node
