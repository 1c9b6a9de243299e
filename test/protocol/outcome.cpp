#include "test/protocol/outcome.hpp"

#include <algorithm>
#include <atomic>

#include "kernels/host/host_memory.hpp"

namespace onehop::test {

bool Outcome::timed_out() const {
  return std::any_of(stops.begin(), stops.end(), [](const Stopped& s) { return s.why == Stop::kTimeout; });
}

std::string Outcome::text() const {
  std::string text = std::to_string(problems.size()) + " problems";
  for (size_t i = 0; i < problems.size() && i < 12; ++i) text += "\n  " + problems[i];
  return text;
}

std::string describe_stop(const CommView& comm, const Step& step, uint32_t operation) {
  const uint32_t epoch = comm.state->turn.epoch - 1;
  std::string text = "stopped in operation " + std::to_string(operation) + " (" + name_of(step.method) +
                     ", epoch " + std::to_string(epoch) + ", " + std::to_string(packs_of(step)) + " packs)";
  if (HostMemory().stop(comm.control) == Stop::kTimeout)
    text +=
        ", waited for rank " +
        std::to_string(std::atomic_ref<uint32_t>(comm.control->missing_rank).load(std::memory_order_relaxed));
  return text;
}

}  // namespace onehop::test
