// Who is who, as the kernel says it: the users and the namespaces of processes.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace onehop {

/// Whether a user id that the kernel told this process is its `own` (getuid() or geteuid()). In a user
/// namespace all users that it does not know have one id between them: that one is nobody's own.
bool is_own_user(uid_t told, uid_t own);

/// Tells the namespace of the calling thread ("net", "user") from every other of this boot; 0: it cannot be
/// told.
uint64_t namespace_identity(const char* kind);

}  // namespace onehop
