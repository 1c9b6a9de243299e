// Bytes as a plan file: whatever they are, they are refused with a reason, or a communicator gets a plan that
// it can run. Aborts where that is not so.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugin/plan_file/plan_file.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

void check(const onehop::FilePlan& from, onehop::StagingKind kind, uint32_t ranks) {
  using namespace onehop;
  const Settings settings;
  Result<Plan> plan = make_plan(settings, kind, ranks);
  if (!plan) return;
  constexpr uint32_t kMostBlocks = 16;
  Timings timings;
  const Status used = use_plan(from, kMostBlocks, settings, *plan, timings);
  must(static_cast<bool>(used) || !used.reason().empty());
  must(plan->max_bytes() <= settings.max_bytes);
  must(plan->count >= 1 && plan->count <= plan->ranges.size());
  for (const size_t count : {size_t{1}, size_t{3}, size_t{4096}, settings.max_bytes / 2}) {
    const Decision decision = decide({count, nccl::kBfloat16, nccl::kSum}, *plan);
    if (!decision.served) continue;
    const Served& served = *decision.served;
    must(served.piece > 0);
    must(served.most.blocks == 0 ||
         (is_geometry(served.most.blocks, served.most.workers) && served.most.blocks <= kMostBlocks));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  const Result<PlanFile> file = parse_plan_file({reinterpret_cast<const char*>(data), size});
  if (!file) {
    must(!file.reason().empty() && file.reason().size() < 2 * kLongestFact);
    return 0;
  }
  must(file->hash != 0);
  for (const FilePlan& plan : file->plans) {
    must(static_cast<bool>(find_plan(*file, plan.machine)));
    for (const std::string& fact : plan.machine.facts)
      for (const char c : fact) must(is_fact_character(c));
    for (const StagingKind kind : kStagingKinds)
      for (const uint32_t ranks : {2u, 4u, 5u, 16u, static_cast<uint32_t>(plan.islands.size())})
        check(plan, kind, ranks);
  }
  return 0;
}
