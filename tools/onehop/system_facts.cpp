#include "tools/onehop/system_facts.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "tools/onehop/files.hpp"

namespace onehop::tool {
namespace {

namespace fs = std::filesystem;

/// The word behind "Kernel Module" in the first line: "580.95.05".
std::string module_version(const std::string& text) {
  std::istringstream words(text);
  bool behind = false;
  for (std::string word; words >> word;) {
    if (behind && !word.empty() && word[0] >= '0' && word[0] <= '9') return word;
    behind = behind || word == "Module";
  }
  return "";
}

std::optional<bool> is_virtual(const std::string& cpus) {
  const size_t flags = cpus.find("\nflags");
  if (flags == std::string::npos) return std::nullopt;
  return cpus.substr(flags, cpus.find('\n', flags + 1) - flags).find(" hypervisor") != std::string::npos;
}

std::string container_of(const std::string& root) {
  std::error_code error;
  if (fs::exists(root + "/.dockerenv", error)) return "docker";
  if (fs::exists(root + "/run/.containerenv", error)) return "podman";
  const std::string groups = text_of(root + "/proc/1/cgroup");
  for (const char* name : {"kubepods", "docker", "lxc", "libpod"})
    if (groups.find(name) != std::string::npos) return name;
  return "";
}

/// What onehop's staging in host memory does: a memfd, opened again through /proc.
std::string try_shared_pages() {
  const int fd = memfd_create("onehop-doctor", MFD_CLOEXEC);
  if (fd < 0) return std::string("memfd_create: ") + std::strerror(errno);
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(name.c_str(), O_RDWR | O_CLOEXEC);
  std::string trouble = again < 0 ? name + ": " + std::strerror(errno) : "";
  close(fd);
  if (again >= 0) close(again);
  return trouble;
}

}  // namespace

SystemFacts read_system(const std::string& root) {
  SystemFacts facts;
  facts.kernel_driver = module_version(text_of(root + "/proc/driver/nvidia/version"));
  facts.virtual_machine = is_virtual(text_of(root + "/proc/cpuinfo"));
  facts.container = container_of(root);
  struct statvfs shared {};
  if (statvfs((root + "/dev/shm").c_str(), &shared) == 0)
    facts.shared_memory = static_cast<uint64_t>(shared.f_blocks) * shared.f_frsize;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    facts.locked_memory = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  std::istringstream status(text_of(root + "/proc/self/status"));
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Seccomp:", 0) == 0)
      facts.seccomp = static_cast<int>(number_in(line.substr(line.find_first_of("0123456789"))).value_or(-1));
  // The first user namespace maps all ids to themselves.
  std::istringstream map(text_of(root + "/proc/self/uid_map"));
  uint64_t inside = 0, outside = 0, count = 0;
  facts.own_user_namespace = (map >> inside >> outside >> count) && count != UINT32_MAX;
  facts.no_shared_pages = try_shared_pages();
  return facts;
}

}  // namespace onehop::tool
