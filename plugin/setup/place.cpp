#include "plugin/setup/place.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/geometry.hpp"
#include "plugin/setup/pci.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop {
namespace {

/// Equal texts in a row as one: "4 x A, 2 x B".
std::string in_a_row(const std::vector<std::string>& texts) {
  std::string all;
  for (size_t i = 0, next = 0; i < texts.size(); i = next) {
    while (next < texts.size() && texts[next] == texts[i]) ++next;
    all += (i == 0 ? "" : ", ") + std::to_string(next - i) + " x " + texts[i];
  }
  return all;
}

/// Each value's number in the order of first appearance: the shape, whatever the values are.
template <class Value>
std::vector<size_t> numbered(const std::vector<Value>& values) {
  std::vector<Value> known;
  std::vector<size_t> numbers;
  for (const Value& value : values) {
    const auto at = std::find(known.begin(), known.end(), value);
    numbers.push_back(static_cast<size_t>(at - known.begin()));
    if (at == known.end()) known.push_back(value);
  }
  return numbers;
}

/// Root complex, root port and GPU of each rank, as in "0.0.0 0.0.1 1.1.2 1.1.3".
std::string tree_of(std::span<const Hello> hellos, std::span<const Place> places) {
  std::vector<uint64_t> roots, ports;
  std::vector<std::array<unsigned char, 16>> gpus;
  for (size_t r = 0; r < places.size(); ++r) {
    roots.push_back(places[r].root);
    ports.push_back(places[r].port);
    gpus.push_back(hellos[r].gpu);
  }
  const std::vector<size_t> root = numbered(roots), port = numbered(ports), gpu = numbered(gpus);
  std::string text;
  for (size_t r = 0; r < places.size(); ++r)
    text += (r == 0 ? "" : " ") + std::to_string(root[r]) + "." + std::to_string(port[r]) + "." +
            std::to_string(gpu[r]);
  return text;
}

/// Pairs of GPUs with more than PCIe between them, as in "0-1 2-3".
std::string links_of(std::span<const Hello> hellos, std::span<const Place> places) {
  std::string pairs;
  bool all = true, unknown = false;
  for (uint32_t a = 0; a < places.size(); ++a) {
    for (uint32_t b = a + 1; b < places.size(); ++b) {
      if (hellos[a].gpu == hellos[b].gpu) continue;
      const bool seen = (places[a].seen >> b & 1) != 0 || (places[b].seen >> a & 1) != 0;
      const bool linked = (places[a].linked >> b & 1) != 0 || (places[b].linked >> a & 1) != 0;
      unknown = unknown || !seen;
      all = all && linked;
      if (linked) pairs += (pairs.empty() ? "" : " ") + std::to_string(a) + "-" + std::to_string(b);
    }
  }
  if (unknown) return "not seen";
  return pairs.empty() ? "none" : all ? "all" : pairs;
}

std::string text_of(std::span<const char> field) {
  std::string text(field.data(), strnlen(field.data(), field.size()));
  std::erase_if(text, [](char c) { return !is_fact_character(c); });
  return text;
}

/// 22809 as "2.28.9".
std::string nccl_text(int version) {
  const int unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Place own_place(Device& device, uint32_t rank, int nccl, std::span<const Hello> hellos) {
  Place place;
  place.nccl = nccl;
  if (const Result<DeviceTraits> traits = device.traits()) {
    put_text(place.model, traits->model);
    const std::string version = first_line("/sys/module/nvidia/version");
    put_text(place.driver, traits->driver + (version.empty() ? "" : ", " + version));
  }
  if (const Result<DeviceIdentity> identity = device.identity()) {
    place.capability = identity->capability;
    place.multiprocessors = identity->multiprocessors;
  }
  const PciPlace pci = pci_place(get_text(hellos[rank].pci));
  place.root = pci.root;
  place.port = pci.port;
  put_text(place.slot, pci.slot);
  for (uint32_t r = 0; r < hellos.size(); ++r) {
    const std::optional<bool> linked =
        hellos[r].gpu == hellos[rank].gpu ? std::nullopt : device.is_linked(hellos[r].pci);
    if (linked) place.seen |= 1u << r;
    if (linked && *linked) place.linked |= 1u << r;
  }
  return place;
}

Machine machine_of(std::span<const Hello> hellos, std::span<const Place> places) {
  std::vector<std::string> gpus, slots, drivers, nccls;
  std::vector<uint64_t> processes;
  for (size_t r = 0; r < places.size(); ++r) {
    const Place& place = places[r];
    gpus.push_back(text_of(place.model) + " (" + std::to_string(place.capability / 10) + "." +
                   std::to_string(place.capability % 10) + ", " + std::to_string(place.multiprocessors) +
                   " multiprocessors)");
    slots.push_back(place.slot[0] == '\0' ? "unknown slot" : text_of(place.slot));
    drivers.push_back(text_of(place.driver));
    nccls.push_back(nccl_text(place.nccl) + (hellos[r].avoids_peers != 0 ? " without P2P" : ""));
    processes.push_back(hellos[r].process);
  }
  // Of what is nearly always the same everywhere, the text alone.
  const auto same = [](const std::vector<std::string>& texts) {
    return std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return text == texts[0]; })
               ? texts[0]
               : in_a_row(texts);
  };
  const std::vector<size_t> numbers = numbered(processes);
  Machine machine;
  machine[Fact::kOnehop] = text_of(hellos[0].version);
  machine[Fact::kGpus] = in_a_row(gpus);
  machine[Fact::kLinks] =
      "PCI " + tree_of(hellos, places) + "; " + in_a_row(slots) + "; NVLink " + links_of(hellos, places);
  machine[Fact::kDriver] = same(drivers);
  machine[Fact::kNccl] = same(nccls);
  machine[Fact::kRanks] = std::to_string(places.size());
  machine[Fact::kProcesses] = std::to_string(*std::max_element(numbers.begin(), numbers.end()) + 1);
  return machine;
}

uint32_t most_blocks_of(std::span<const Hello> hellos, std::span<const Place> places) {
  uint32_t most = kMaxBlocks;
  for (size_t r = 0; r < places.size(); ++r) {
    const auto sharing = static_cast<uint32_t>(std::count_if(
        hellos.begin(), hellos.end(), [&](const Hello& other) { return other.gpu == hellos[r].gpu; }));
    most = std::min(most, blocks_beside(places[r].multiprocessors, std::max(sharing, 1u)));
  }
  return most;
}

}  // namespace onehop
