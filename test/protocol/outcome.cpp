#include "test/protocol/outcome.hpp"

#include <algorithm>

#include "kernels/host/host_memory.hpp"
#include "kernels/protocol/words.hpp"
#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

/// First pack of `source` that has not arrived, or `packs`.
template <class Words>
uint32_t first_missing(const CommView& comm, uint32_t epoch, uint32_t slot, uint32_t source, uint32_t packs) {
  const Pack* region =
      reinterpret_cast<const Pack*>(comm.inbox(comm.rank)) + comm.layout.region(Words::kKind, slot, source);
  for (uint32_t i = 0; i < packs; ++i) {
    typename Words::Line line;
    for (uint32_t k = 0; k < Words::kPacks; ++k) line.pack[k] = HostMemory().receive(region++);
    if (!arrived<Words>(line, epoch)) return i;
  }
  return packs;
}

}  // namespace

bool Outcome::timed_out() const {
  return std::any_of(stops.begin(), stops.end(), [](const Stopped& s) { return s.why == Stop::kTimeout; });
}

std::string Outcome::text() const {
  std::string text = std::to_string(problems.size()) + " problems";
  for (size_t i = 0; i < problems.size() && i < 12; ++i) text += "\n  " + problems[i];
  return text;
}

std::string describe_stop(const CommView& comm, const Step& step, uint32_t operation, uint32_t slots) {
  const Turn& next = comm.state->turn;
  const uint32_t epoch = next.epoch - 1, slot = next.slot == 0 ? slots - 1 : next.slot - 1;
  const auto packs = static_cast<uint32_t>((step.count * element_size(step.element) + 15) / 16);
  const bool sentinel = is_floating(step.element) && element_size(step.element) <= 4;
  std::string text = "stopped in operation " + std::to_string(operation) + " (epoch " +
                     std::to_string(epoch) + ", slot " + std::to_string(slot) + ", " + std::to_string(packs) +
                     " packs)";
  for (uint32_t source = 0; source < comm.ranks; ++source) {
    if (source == comm.rank) continue;
    const uint32_t missing = sentinel ? first_missing<SentinelWords>(comm, epoch, slot, source, packs)
                                      : first_missing<FlagWords>(comm, epoch, slot, source, packs);
    if (missing < packs)
      text += ", no pack " + std::to_string(missing) + " from rank " + std::to_string(source);
  }
  return text;
}

}  // namespace onehop::test
