#include "test/standin/cudart/broken_links.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace onehop::standin {
namespace {

using Clock = std::chrono::steady_clock;

struct Setting {
  Fault fault = Fault::kDrop;
  size_t only = 0;  ///< 0: all
};

std::optional<Setting> setting_of(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  const size_t colon = text.find(':');
  constexpr const char* kNames[] = {"drop", "zero", "flip", "mirror", "half", "delay"};
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), text.substr(0, colon));
  if (name == std::end(kNames)) std::abort();  // a test that would test nothing
  return Setting{static_cast<Fault>(name - std::begin(kNames)),
                 colon == std::string::npos ? 0 : std::stoul(text.substr(colon + 1))};
}

void store_late(Pack* to, Pack pack) {
  // In the order of the stores: one thread.
  struct Late {
    Clock::time_point due;
    Pack* to;
    Pack pack;
  };
  struct Queue {
    std::mutex mutex;
    std::vector<Late> stores;
  };
  static auto* const queue = [] {
    auto* all = new Queue;
    std::thread([all] {
      for (;; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
        const std::lock_guard guard(all->mutex);
        const auto now = Clock::now();
        const auto due = std::find_if(all->stores.begin(), all->stores.end(),
                                      [&](const Late& late) { return late.due > now; });
        for (auto late = all->stores.begin(); late != due; ++late) HostMemory().send(late->to, late->pack);
        all->stores.erase(all->stores.begin(), due);
      }
    }).detach();
    return all;
  }();
  const std::lock_guard guard(queue->mutex);
  queue->stores.push_back({Clock::now() + kFaultDelay, to, pack});
}

Pack load_late(const Pack* from, Pack now) {
  struct First {
    Clock::time_point until;
    Pack pack;
  };
  static std::mutex mutex;
  static auto* const looks = new std::map<const Pack*, First>;
  const std::lock_guard guard(mutex);
  const First& first = looks->try_emplace(from, First{Clock::now() + kFaultDelay, now}).first->second;
  return Clock::now() < first.until ? first.pack : now;
}

/// The state of this process. Never destroyed: the threads of streams outlive main().
struct Links {
  const std::optional<Setting> device = setting_of("ONEHOP_STANDIN_FAULT"),
                               host = setting_of("ONEHOP_STANDIN_HOST_FAULT");
  std::mutex mutex;
  size_t imported = 0, registered = 0;
  std::vector<BrokenLink> broken;

  void note(const std::optional<Setting>& setting, size_t& count, const void* memory, size_t bytes,
            bool on_read) {
    const std::lock_guard guard(mutex);
    ++count;
    if (setting && (setting->only == 0 || setting->only == count))
      broken.push_back({static_cast<const unsigned char*>(memory), bytes, setting->fault, on_read});
  }
};

Links& links() {
  static auto* const all = new Links;
  return *all;
}

}  // namespace

void note_imported(const void* memory, size_t bytes) {
  links().note(links().device, links().imported, memory, bytes, false);
}

void note_registered(const void* memory, size_t bytes) {
  links().note(links().host, links().registered, memory, bytes, true);
}

void note_gone(const void* memory) {
  const std::lock_guard guard(links().mutex);
  std::erase_if(links().broken, [&](const BrokenLink& link) { return link.memory == memory; });
}

std::shared_ptr<const Tampering> tampering_for(const CommView& comm) {
  const std::lock_guard guard(links().mutex);
  if (links().broken.empty()) return nullptr;
  auto tampering = std::make_shared<Tampering>();
  for (const BrokenLink& link : links().broken)
    if (comm.own < link.memory || comm.own >= link.memory + link.bytes) tampering->links.push_back(link);
  tampering->store_late = store_late;
  tampering->load_late = load_late;
  return tampering;
}

}  // namespace onehop::standin
