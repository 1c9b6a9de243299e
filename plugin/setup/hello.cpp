#include "plugin/setup/hello.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "plugin/hash.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop {
namespace {

std::string rank(size_t r) {
  return "rank " + std::to_string(r);
}

std::string veto_text(const Hello& hello) {
  std::string detail = get_text(hello.veto_text);
  switch (hello.veto) {
    case Veto::kNone:
      break;
    case Veto::kDisabled:
      return "ONEHOP_ENABLE=0";
    case Veto::kBadSetting:
    case Veto::kNcclSwitch:
    case Veto::kResources:
    case Veto::kNcclVersion:
      return detail;
  }
  return "a reason that this version does not know";
}

}  // namespace

std::optional<std::string> verdict_of(std::span<const Hello> table) {
  const Hello& first = table[0];
  for (size_t r = 0; r < table.size(); ++r) {
    const Hello& hello = table[r];
    if (hello.magic != Hello::kMagic) return rank(r) + " sent no record of onehop";
    if (hello.wire != first.wire || hello.version != first.version)
      return rank(r) + " runs onehop " + get_text(hello.version) + ", rank 0 runs " + get_text(first.version);
    if (hello.rank != r || hello.ranks != table.size())
      return rank(r) + " says it is rank " + std::to_string(hello.rank) + " of " +
             std::to_string(hello.ranks);
  }
  for (size_t r = 0; r < table.size(); ++r)
    if (table[r].veto != Veto::kNone) return veto_text(table[r]) + " (" + rank(r) + ")";
  for (size_t r = 0; r < table.size(); ++r) {
    const Hello& hello = table[r];
    if (hello.host == 0) return rank(r) + " cannot tell its node: no boot id in /proc, and no NCCL_HOSTID";
    if (hello.host != first.host) return rank(r) + " is on another node than rank 0";
    if (hello.settings != first.settings) return "ONEHOP_ settings differ between rank 0 and " + rank(r);
    for (size_t other = 0; other < r; ++other)
      if (table[other].user_namespace == hello.user_namespace && table[other].user != hello.user)
        return rank(r) + " runs as another user than " + rank(other);
    for (size_t other = 0; other < r; ++other)
      if ((hello.launches_block != 0 || table[other].launches_block != 0) &&
          table[other].process == hello.process)
        return "CUDA_LAUNCH_BLOCKING=1 with " + rank(other) + " and " + rank(r) +
               " in one process: the first kernel would wait for one that is launched after it";
  }
  return std::nullopt;
}

bool users_are_unclear(std::span<const Hello> table) {
  return std::any_of(table.begin(), table.end(),
                     [&](const Hello& hello) { return hello.user_namespace != table[0].user_namespace; });
}

uint64_t host_identity() {
  Hash hash;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(file, boot_id);
  const char* host_id = std::getenv("NCCL_HOSTID");
  if (boot_id.empty() && (host_id == nullptr || *host_id == '\0')) return 0;
  return hash.add(boot_id).add(host_id != nullptr ? host_id : "").value();
}

}  // namespace onehop
