#include "plugin/setup/rendezvous.hpp"

#include <chrono>

namespace onehop {

void Rendezvous::arrive(uint64_t id, uint32_t here) {
  const std::lock_guard lock(mutex_);
  meetings_[id].arrivals += here;
  changed_.notify_all();
}

void Rendezvous::wait(uint64_t id, uint32_t all, uint32_t phase, const std::function<bool()>& gives_up) {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = uint64_t{all} * (phase + 1);
  while (meetings_[id].arrivals < wanted && meetings_[id].gone == 0) {
    changed_.wait_for(lock, std::chrono::milliseconds(10));
    lock.unlock();
    const bool over = gives_up();
    lock.lock();
    if (over) return;
  }
}

void Rendezvous::leave(uint64_t id, uint32_t here, uint32_t all) {
  const std::lock_guard lock(mutex_);
  Meeting& meeting = meetings_[id];
  meeting.gone += here;
  if (meeting.gone >= all) meetings_.erase(id);
  changed_.notify_all();
}

}  // namespace onehop
