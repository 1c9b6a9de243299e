#include "plugin/setup/own_hello.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "onehop/onehop.h"
#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/nccl_releases.hpp"
#include "plugin/nccl_switches.hpp"
#include "plugin/plan.hpp"
#include "plugin/setup/progress.hpp"
#include "plugin/staging/user.hpp"

namespace onehop {
namespace {

/// NCCL reduces fp8 since this release, and on GPUs of compute capability 9.0 and up.
constexpr int kFirstNcclWithFp8 = 22403, kFirstCapabilityWithFp8 = 90;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::atoi(value) != 0;
}

class Vetoes {
 public:
  explicit Vetoes(Hello& hello) : hello_(hello) {}
  /// The first one counts.
  void add(Veto why, const std::string& text) {
    if (hello_.veto != Veto::kNone) return;
    hello_.veto = why;
    put_text(hello_.veto_text, text);
  }

 private:
  Hello& hello_;
};

}  // namespace

Hello own_hello(const nccl::Functions& functions, Member& member) {
  Globals& g = globals();
  const CurrentDevice scope(member.device, member.device_index);
  Hello hello;
  hello.rank = static_cast<uint32_t>(member.rank);
  hello.ranks = static_cast<uint32_t>(member.ranks);
  hello.host = host_identity();
  hello.process = g.process;
  hello.settings = settings_hash(g.settings);
  hello.pid = static_cast<int32_t>(getpid());
  hello.user = getuid();
  hello.user_namespace = namespace_identity("user");
  hello.nonce = random_identity();
  hello.launches_block = is_set("CUDA_LAUNCH_BLOCKING") ? 1 : 0;
  put_text(hello.version, ONEHOP_VERSION);
  const PlanFile* plan_file = g.plan_file.get(g.settings.plan);
  if (plan_file != nullptr) hello.plan = plan_file->hash;

  Vetoes vetoes(hello);
  if (!g.report.errors.empty()) vetoes.add(Veto::kBadSetting, g.report.errors.front());
  if (!g.settings.enable) vetoes.add(Veto::kDisabled, "");
  if (const auto text = nccl_switch_veto()) vetoes.add(Veto::kNcclSwitch, *text);

  int version = 0;
  if (functions.GetVersion(&version) != nccl::kSuccess || version < kOldestNccl || version > kNewestNccl)
    vetoes.add(Veto::kNcclVersion,
               fmt::format("NCCL version {} is not known to onehop " ONEHOP_VERSION, version));

  hello.avoids_peers = nccl_avoids_peers() ? 1 : 0;
  hello.failed_probes = g.failed_probes.load();
  const uint64_t in_use = g.staging_bytes.load();
  uint64_t most = 0;
  for (const StagingKind kind : kStagingKinds)
    if (const Result<Plan> plan =
            make_plan(settings_with(g.settings, plan_file != nullptr), kind, hello.ranks))
      most = std::max<uint64_t>(most, Staging::bytes_for(plan->layout));
  if (in_use + most > kProcessStagingBudget)
    vetoes.add(
        Veto::kResources,
        fmt::format(
            "this process has {} MiB of staging memory for other communicators, and {} MiB is the most",
            in_use >> 20, kProcessStagingBudget >> 20));

  if (const Result<DeviceIdentity> identity = member.device.identity()) {
    member.multiprocessors = identity->multiprocessors;
    hello.gpu = identity->uuid;
    hello.pci = identity->pci;
    hello.takes_fp8 = version >= kFirstNcclWithFp8 && identity->capability >= kFirstCapabilityWithFp8 ? 1 : 0;
  } else {
    vetoes.add(Veto::kResources, identity.reason());
  }
  if (const Result<size_t> memory = member.device.free_memory()) hello.free_memory = *memory;
  return hello;
}

}  // namespace onehop
