// What the operating system, a container or a virtual machine allows here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace onehop::tool {

struct SystemFacts {
  std::string kernel_driver;  ///< version of NVIDIA's kernel module; empty: not loaded, or not to be seen
  std::optional<bool> virtual_machine;    ///< nothing: unknown
  std::string container;                  ///< "docker", "podman", ...; empty: none is recognised
  std::optional<uint64_t> shared_memory;  ///< size of /dev/shm
  std::optional<uint64_t> locked_memory;  ///< limit of this user; UINT64_MAX: none
  std::optional<int> seccomp;             ///< 0 none, 1 strict, 2 a filter
  bool own_user_namespace = false;
  std::string no_shared_pages;  ///< why memory cannot be shared by memfd and /proc; empty: it can
};

/// `root`: in front of /proc, /sys, /dev and /run. Limits are those of this process.
SystemFacts read_system(const std::string& root = "");

}  // namespace onehop::tool
