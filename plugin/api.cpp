// The public C interface.
#include <cstring>

#include "onehop/onehop.h"
#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"
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

}  // extern "C"
