#include "plugin/setup/exchange.hpp"

#include <chrono>
#include <thread>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"

namespace onehop {
namespace {

using std::chrono::microseconds, std::chrono::milliseconds, std::chrono::seconds;

/// Watches one wait, and has a word for the user if it gets long.
class Watch {
 public:
  explicit Watch(const Member& member) : member_(member) {}

  void wait_a_little() {
    pause_.wait_a_little();
    if (told_ || pause_.waited() < seconds(20)) return;
    told_ = true;
    log::warn(
        "rank {} of {} has waited 20 s for the other ranks to set up onehop: is it loaded in all of them, "
        "and do all of "
        "them call ncclAllReduce on this communicator?",
        member_.rank, member_.ranks);
  }

 private:
  const Member& member_;
  Pause pause_;
  bool told_ = false;
};

}  // namespace

void Pause::wait_a_little() const {
  if (waited() < milliseconds(2)) return std::this_thread::yield();
  std::this_thread::sleep_for(microseconds(100));
}

bool usable(const nccl::Functions& functions, nccl::Comm handle) {
  nccl::Result state = nccl::kInProgress;
  while (functions.CommGetAsyncError(handle, &state) == nccl::kSuccess && state == nccl::kInProgress)
    std::this_thread::sleep_for(microseconds(100));
  return state == nccl::kSuccess;
}

nccl::Result finish_exchange(const nccl::Functions& functions, Members& members) {
  for (auto& m : members) {
    if (!m->pending) continue;
    if (!usable(functions, m->handle)) return nccl::kInternalError;
    const CurrentDevice scope(m->device, m->device_index);
    Watch watch(*m);
    while (true) {
      const Result<bool> finished = m->device.finished(m->stream);
      if (!finished) return nccl::kUnhandledCudaError;
      if (*finished) break;
      watch.wait_a_little();
    }
  }
  return nccl::kSuccess;
}

void meet_in_process(Members& members) {
  Rendezvous& rendezvous = globals().rendezvous;
  for (auto& m : members)
    if (m->pending) rendezvous.arrive(m->id, 1);
  for (auto& m : members)
    if (m->pending)
      rendezvous.wait(m->id, m->ranks_here, m->meetings++,
                      [&] { return !globals().registry.announced(m->announcement); });
}

}  // namespace onehop
