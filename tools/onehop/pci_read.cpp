#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/onehop/files.hpp"
#include "tools/onehop/pci.hpp"

namespace onehop::tool {
namespace {

namespace fs = std::filesystem;

/// "16.0 GT/s PCIe" is generation 4; "Unknown" and nothing are 0.
int generation_of(const std::string& speed) {
  double gigatransfers = 0;
  std::istringstream(speed) >> gigatransfers;
  constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64};
  for (size_t i = 0; i < std::size(kSpeeds); ++i)
    if (gigatransfers == kSpeeds[i]) return static_cast<int>(i) + 1;
  return 0;
}

/// Links that are not there say 0, and virtual ones 255.
int width_of(const std::string& text) {
  const int width = static_cast<int>(number_in(text).value_or(0));
  return width > 0 && width <= 32 ? width : 0;
}

/// BAR 1 of a GPU, the window into its memory. Which of the lines it is differs, as the registers before it
/// may take one or two, and be prefetchable or not; it is the largest that is prefetchable, also where it is
/// small.
std::optional<uint64_t> bar1_of(const std::string& resource) {
  constexpr uint64_t kMemory = 0x200, kPrefetch = 0x2000;
  std::istringstream lines(resource);
  std::string line;
  std::optional<uint64_t> largest;
  for (int bar = 0; bar < 6 && std::getline(lines, line); ++bar) {
    uint64_t begin = 0, end = 0, flags = 0;
    std::istringstream numbers(line);
    if (!(numbers >> std::hex >> begin >> end >> flags)) break;
    if ((flags & kMemory) != 0 && (flags & kPrefetch) != 0 && end > begin)
      largest = std::max(largest.value_or(0), end - begin + 1);
  }
  return largest;
}

/// From the configuration space, of which only root sees more than the first 64 bytes.
Redirect redirect_of(const std::string& config) {
  constexpr size_t kExtended = 0x100, kLast = 4096;
  constexpr uint32_t kAcs = 0x000D, kRequestRedirect = 1 << 2, kCompletionRedirect = 1 << 3;
  const auto at = [&](size_t offset, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(config[offset + i])) << (8 * i);
    return value;
  };
  if (config.size() < kLast) return Redirect::kUnknown;
  // The list of capabilities may be damaged: it ends after as many as there is room for.
  size_t offset = kExtended;
  for (int i = 0; i < 480 && offset >= kExtended && offset + 8 <= kLast; ++i) {
    const uint32_t header = at(offset, 4);
    if (header == 0 || header == 0xFFFFFFFF) break;
    if ((header & 0xFFFF) == kAcs)
      return (at(offset + 6, 2) & (kRequestRedirect | kCompletionRedirect)) != 0 ? Redirect::kOn
                                                                                 : Redirect::kOff;
    offset = header >> 20 & ~3u;
  }
  return Redirect::kOff;  // it has no such control, so it redirects nothing
}

PciDevice read_device(const fs::path& folder) {
  PciDevice device;
  device.address = folder.filename();
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  device.parent = error ? "" : real.parent_path().filename().string();
  const auto number = [&](const char* name) { return number_in(text_of(folder / name)).value_or(0); };
  device.device_class = static_cast<uint32_t>(number("class"));
  device.vendor = static_cast<uint32_t>(number("vendor"));
  device.device = static_cast<uint32_t>(number("device"));
  device.numa_node = static_cast<int>(number_in(text_of(folder / "numa_node")).value_or(-1));
  device.link_generation = generation_of(text_of(folder / "current_link_speed"));
  device.link_generation_max = generation_of(text_of(folder / "max_link_speed"));
  device.link_width = width_of(text_of(folder / "current_link_width"));
  device.link_width_max = width_of(text_of(folder / "max_link_width"));
  device.iommu = text_of(folder / "iommu_group" / "type");
  if (device.is_gpu()) device.bar1_bytes = bar1_of(text_of(folder / "resource"));
  if (device.is_bridge()) device.redirect = redirect_of(bytes_of_file(folder / "config"));
  return device;
}

}  // namespace

PciTree read_pci_tree(const std::string& root) {
  PciTree tree;
  std::error_code error;
  for (fs::directory_iterator entries(root + "/sys/bus/pci/devices", error), end; !error && entries != end;
       entries.increment(error)) {
    tree.readable = true;
    PciDevice device = read_device(entries->path());
    tree.devices.emplace(device.address, std::move(device));
  }
  return tree;
}

std::vector<std::string> PciTree::gpus() const {
  std::vector<std::string> found;
  for (const auto& [address, device] : devices)
    if (device.is_gpu()) found.push_back(address);
  return found;
}

std::vector<std::string> PciTree::way_up(const std::string& address) const {
  std::vector<std::string> way = {address};
  // A tree has no circle, but what stands in /sys of a test or a strange machine may.
  while (way.size() < 64) {
    const auto device = devices.find(way.back());
    if (device == devices.end() || device->second.parent.empty()) break;
    way.push_back(device->second.parent);
  }
  return way;
}

std::string PciTree::meet(const std::string& a, const std::string& b) const {
  const std::vector<std::string> way = way_up(b);
  for (const std::string& above : way_up(a))
    if (above != a && std::find(way.begin(), way.end(), above) != way.end()) return above;
  return "";
}

}  // namespace onehop::tool
