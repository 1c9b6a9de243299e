// The PCI devices of this machine as /sys shows them, and a picture of those on the way to GPUs. A virtual
// machine or a container may show less: what is not there is unknown, never guessed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onehop::tool {

/// Whether a bridge sends what GPUs below it write to each other up to the root complex and back.
enum class Redirect { kUnknown, kOff, kOn };

struct PciDevice {
  std::string address;  ///< "0000:c1:00.0"
  std::string parent;   ///< address of the bridge above, or the root complex "pci0000:c0"
  uint32_t device_class = 0, vendor = 0, device = 0;
  int numa_node = -1;  ///< -1: unknown, or there is only one
  int link_generation = 0, link_generation_max = 0, link_width = 0, link_width_max = 0;  ///< 0: unknown
  std::optional<uint64_t> bar1_bytes;  ///< the window through which peers reach a GPU's memory
  std::string iommu;  ///< type of its IOMMU group: "DMA", "identity", ...; empty: none or unknown
  Redirect redirect = Redirect::kUnknown;

  bool is_bridge() const { return device_class >> 8 == 0x0604; }
  bool is_gpu() const { return device_class >> 16 == 0x03 && vendor == 0x10DE; }
};

struct PciTree {
  bool readable = false;                     ///< there is a list of devices at all
  std::map<std::string, PciDevice> devices;  ///< by address

  std::vector<std::string> gpus() const;
  /// The addresses from a device up to its root complex, itself first.
  std::vector<std::string> way_up(const std::string& address) const;
  /// The lowest bridge or root complex above both; empty: they have none in common.
  std::string meet(const std::string& a, const std::string& b) const;
};

/// `root`: in front of /sys.
PciTree read_pci_tree(const std::string& root = "");

/// Root complexes, bridges and GPUs, a line each. `names`: of GPUs, by address.
std::string draw(const PciTree&, const std::map<std::string, std::string>& names);

}  // namespace onehop::tool
