// Keeps streams waiting until everything that is to run behind has been enqueued, so that the time of
// enqueueing is not measured. A host function does this on GPUs and on the stand-in alike.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace onehop::bench {

class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }

  /// For cudaLaunchHostFunc, with a Gate as its data. Gives up after a while: an enqueueing call that waited
  /// for this stream would otherwise never come back, and the samples would be long, not missing.
  static void wait(void* gate) {
    auto& self = *static_cast<Gate*>(gate);
    std::unique_lock lock(self.mutex_);
    self.changed_.wait_for(lock, std::chrono::seconds(2), [&] { return self.open_; });
  }

 private:
  void set(bool open) {
    const std::lock_guard guard(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};

}  // namespace onehop::bench
