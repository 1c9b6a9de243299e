// The public C interface.
#include <cstring>

#include "onehop/onehop.h"
#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"
#include "plugin/plan_file/plan_file.hpp"
#include "plugin/report.hpp"

using onehop::Communicator, onehop::globals;

namespace {

Communicator* find(ncclComm* comm) {
  return globals().registry.find(reinterpret_cast<onehop::nccl::Comm>(comm));
}

onehopState state_of(const Communicator& comm) {
  if (comm.stopped() != onehop::Stop::kNone) return onehopFailed;
  return comm.on() && !comm.closed() ? onehopOn : onehopOff;
}

}  // namespace

extern "C" {

const char* onehopVersion() {
  return ONEHOP_VERSION;
}

int onehopGetCommStatus(ncclComm* handle, onehopCommStatus* status) {
  if (handle == nullptr || status == nullptr) return -1;
  *status = {};
  const Communicator* comm = find(handle);
  if (comm == nullptr) return 0;
  status->state = state_of(*comm);
  std::strncpy(status->reason, onehop::reason_of(*comm).c_str(), sizeof(status->reason) - 1);
  status->max_bytes = status->state == onehopOn ? comm->plan().max_bytes() : 0;
  status->taken = comm->statistics().taken();
  status->passed = comm->statistics().passed();
  status->meeting_ns = comm->record().meeting_ns;
  status->set_up_ns = comm->record().set_up_ns;
  status->staging_bytes = comm->record().staging_bytes;
  return 0;
}

int onehopGetStatistics(onehopStatistics* statistics) {
  if (statistics == nullptr) return -1;
  const onehop::Statistics sums = globals().statistics.snapshot().sums();
  *statistics = {};
  statistics->images = static_cast<uint32_t>(globals().images.count());
  statistics->taken = sums.taken();
  statistics->passed = sums.passed();
  statistics->seen = statistics->taken + statistics->passed;
  statistics->communicators_on = globals().communicators_on;
  statistics->communicators_off = globals().communicators_off;
  return 0;
}

int onehopEnable(ncclComm* handle, int enable) {
  Communicator* comm = find(handle);
  if (comm == nullptr || state_of(*comm) != onehopOn) return -1;
  comm->switch_to(enable != 0);
  return 0;
}

int onehopGetMachine(ncclComm* handle, char* text, size_t size) {
  const Communicator* comm = find(handle);
  if (comm == nullptr || text == nullptr || state_of(*comm) != onehopOn || !comm->planned()) return -1;
  try {
    std::string all = "{\"machine\": " + to_json(comm->planned()->machine) + ", \"methods\": [";
    const onehop::Plan& plan = comm->plan();
    for (uint32_t i = 0; i < plan.candidate_count; ++i)
      all += (i == 0 ? "\"" : ", \"") + std::string(name_of(plan.candidates[i])) + '"';
    all += "], \"islands\": \"" + onehop::show_islands({plan.islands.island, plan.layout.ranks});
    all += "\", \"blocks\": " + std::to_string(comm->planned()->most_blocks) + "}";
    if (all.size() >= size) return -1;
    std::memcpy(text, all.c_str(), all.size() + 1);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

int onehopSetPlan(ncclComm* handle, const char* text, char* why, size_t size) {
  const auto refuse = [&](const char* reason) {
    if (why != nullptr && size > 0) {
      why[0] = '\0';
      std::strncat(why, reason, size - 1);
    }
    return -1;
  };
  Communicator* comm = find(handle);
  if (comm == nullptr || text == nullptr || state_of(*comm) != onehopOn || !comm->planned())
    return refuse("the communicator takes no plans");
  try {
    const onehop::Result<onehop::PlanFile> file = onehop::parse_plan_file(text);
    if (!file) return refuse(file.reason().c_str());
    const auto found = find_plan(*file, comm->planned()->machine);
    if (!found) return refuse(found.reason().c_str());
    onehop::Plan plan = comm->plan();
    onehop::Timings timings;
    const onehop::Status used =
        use_plan(**found, comm->planned()->most_blocks, globals().settings, plan, timings);
    if (!used) return refuse(used.reason().c_str());
    comm->set_plan(plan);
    return 0;
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
}

}  // extern "C"
