#include "test/node/confine.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace onehop::node {
namespace {

void must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "cannot confine this process: %s: %s\n", what, std::strerror(errno));
  _exit(126);
}

void write_to(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  must(fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), path);
  close(fd);
}

void become(uid_t user) {
  const auto group = static_cast<gid_t>(user);
  must(setgroups(0, nullptr) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0,
       "another user");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // that was forgotten with the user
  prctl(PR_SET_DUMPABLE, 1);         // so was whether it owns its own /proc
}

/// The user keeps its number, as under Apptainer.
void enter_user_namespace() {
  const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
  must(unshare(CLONE_NEWUSER) == 0, "a user namespace");
  write_to("/proc/self/setgroups", "deny");
  write_to("/proc/self/uid_map", user + " " + user + " 1");
  write_to("/proc/self/gid_map", group + " " + group + " 1");
}

/// This process goes on as the first of the namespace, or waits for that one.
void go_on_in_pid_namespace() {
  const pid_t first = fork();
  must(first >= 0, "fork");
  if (first == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  int status = 0;
  must(waitpid(first, &status, 0) == first, "waiting");
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}

void mount_on_shm(Shm shm) {
  const char* options = shm == Shm::kSmall ? "size=64m" : "size=4k,nr_inodes=1";
  must(mount("onehop", "/dev/shm", "tmpfs", 0, options) == 0, "mounting /dev/shm");
}

}  // namespace

void enter(const Confinement& confinement) {
  if (confinement.user != 0) become(confinement.user);
  const int namespaces = confinement.namespaces;
  const bool mounts = (namespaces & CLONE_NEWPID) != 0 || confinement.shm != Shm::kAsItIs;
  // Who is not root may have the others inside a user namespace only.
  if ((namespaces & CLONE_NEWUSER) != 0 || (geteuid() != 0 && (namespaces != 0 || mounts)))
    enter_user_namespace();
  const int others = (namespaces & ~CLONE_NEWUSER) | (mounts ? CLONE_NEWNS : 0);
  if (others != 0) must(unshare(others) == 0, "namespaces");
  if (mounts) must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  if (confinement.shm != Shm::kAsItIs) mount_on_shm(confinement.shm);
  if ((namespaces & CLONE_NEWPID) != 0) {
    go_on_in_pid_namespace();
    must(mount("proc", "/proc", "proc", 0, nullptr) == 0, "mounting /proc");
  }
}

std::optional<std::string> cannot_enter(const Confinement& confinement) {
  const pid_t child = fork();
  if (child == 0) {
    enter(confinement);
    _exit(access(RANK_PROGRAM, X_OK) == 0 ? 0 : 125);
  }
  int status = 0;
  if (waitpid(child, &status, 0) == child && status == 0) return std::nullopt;
  return WEXITSTATUS(status) == 125 ? "that user cannot run the programs of this build"
                                    : "needs root, or user namespaces for everybody";
}

}  // namespace onehop::node
