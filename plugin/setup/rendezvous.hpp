// Ranks of one communicator that live in one process, each with a thread of its own, meet on the host before
// any of them lets its GPU wait for the others. A CUDA call of one thread (capturing, instantiating, freeing)
// may wait for kernels of the same context; if those wait for that thread's own rank, nobody gets on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace onehop {

class Rendezvous {
 public:
  /// This thread has come with `here` ranks of communicator `id`. Never waits.
  void arrive(uint64_t id, uint32_t here);
  /// Waits until the `all` ranks of the communicator that live in this process have come, for the `phase`-th
  /// time (0, 1, ...); or until one of them has left, or `gives_up` says so, which is asked now and then.
  void wait(uint64_t id, uint32_t all, uint32_t phase, const std::function<bool()>& gives_up);
  /// This thread's ranks will not come again.
  void leave(uint64_t id, uint32_t here, uint32_t all);

 private:
  struct Meeting {
    uint64_t arrivals = 0;
    uint32_t gone = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Meeting> meetings_;
};

}  // namespace onehop
