// Processes of a job in namespaces of their own, as containers give them, or as another user.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace onehop::node {

enum class Shm { kAsItIs, kSmall, kNone };

struct Confinement {
  int namespaces = 0;      ///< of its own: CLONE_NEW* of <sched.h>
  Shm shm = Shm::kAsItIs;  ///< /dev/shm: of 64 MB, or with no room at all
  uid_t user = 0;          ///< that it runs as; 0: as it is

  bool confines() const { return namespaces != 0 || shm != Shm::kAsItIs || user != 0; }
};

/// In a child, before exec. With a PID namespace of its own the process goes on as a child of that, and the
/// caller waits for it and ends as it does. Ends the process where it cannot be done.
void enter(const Confinement&);

/// Why a process cannot be confined so on this machine, if it cannot: found by trying.
std::optional<std::string> cannot_enter(const Confinement&);

}  // namespace onehop::node
