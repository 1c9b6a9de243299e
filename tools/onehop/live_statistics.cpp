#include "tools/onehop/live_statistics.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

namespace onehop::tool {
namespace {

namespace fs = std::filesystem;

std::string link_of(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.string();
}

/// The descriptor that leads to the page: "/memfd:onehop-stats (deleted)".
Result<fs::path> find_page(const fs::path& process) {
  std::error_code error;
  if (!fs::exists(process, error)) return Error{"there is no such process"};
  const std::string wanted = std::string("/memfd:") + kStatisticsName;
  fs::directory_iterator entries(process / "fd", error);
  if (error) return Error{"it may not be looked into (" + error.message() + "); try as its user, or as root"};
  while (entries != fs::directory_iterator()) {
    if (link_of(entries->path()).rfind(wanted, 0) == 0) return entries->path();
    entries.increment(error);
    if (error) break;
  }
  return Error{
      "onehop is not active in it: it has not been loaded, or there is no libnccl in the process yet (onehop "
      "doctor --pid says more)"};
}

class File {
 public:
  explicit File(const fs::path& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  bool is_open() const { return fd_ >= 0; }
  bool is_regular() const {
    struct stat status {};
    return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  }
  /// Copied by the kernel: a page that is shortened meanwhile is a short copy, not a fault.
  std::vector<unsigned char> read(size_t most) const {
    std::vector<unsigned char> bytes(most);
    size_t have = 0;
    while (have < most) {
      const ssize_t got = pread(fd_, bytes.data() + have, most - have, static_cast<off_t>(have));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

 private:
  int fd_;
};

uint32_t changes_of(const std::vector<unsigned char>& head) {
  uint32_t changes = 1;
  if (head.size() >= offsetof(StatisticsPage, changes) + sizeof changes)
    std::memcpy(&changes, head.data() + offsetof(StatisticsPage, changes), sizeof changes);
  return changes;
}

/// A copy during which no communicator came or went, if one succeeds.
std::vector<unsigned char> quiet_copy(const File& file) {
  constexpr int kTries = 50;
  std::vector<unsigned char> bytes;
  for (int i = 0; i < kTries; ++i) {
    bytes = file.read(sizeof(StatisticsPage) + 1);
    const uint32_t before = changes_of(bytes);
    if (before % 2 == 0 && before == changes_of(file.read(offsetof(StatisticsPage, elsewhere)))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return bytes;
}

/// The ids of a process, in its own and in the outer namespaces. Empty: unknown.
std::vector<int> ids_of(const fs::path& process) {
  std::ifstream file(process / "status");
  std::vector<int> ids;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    std::istringstream numbers(line.substr(6));
    for (int id = 0; numbers >> id;) ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<StatisticsSnapshot> live_statistics(int pid, const std::string& proc) {
  const fs::path process = fs::path(proc) / std::to_string(pid);
  const auto page = find_page(process);
  if (!page) return page.error();
  const File file(*page);
  if (!file.is_open()) return Error{std::string("its statistics cannot be opened: ") + std::strerror(errno)};
  if (!file.is_regular()) return Error{"its statistics cannot be used: they are no memory"};
  auto snapshot = read_page(quiet_copy(file));
  if (!snapshot) return Error{"its statistics cannot be used: " + snapshot.reason()};
  const std::vector<int> ids = ids_of(process);
  if (!ids.empty() && std::find(ids.begin(), ids.end(), snapshot->pid) == ids.end())
    return Error{"its statistics cannot be used: they are those of process " + std::to_string(snapshot->pid)};
  return snapshot;
}

std::vector<int> processes_with_statistics(const std::string& proc) {
  std::vector<int> pids;
  std::error_code error;
  for (fs::directory_iterator entries(proc, error), end; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename();
    int pid = 0;
    const auto [last, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc() && last == name.data() + name.size() && find_page(entries->path()))
      pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace onehop::tool
