// Where a GPU is on the PCI tree, as Linux shows it.
#pragma once

#include <cstdint>
#include <string>

namespace onehop {

/// Zeros and no text where it is not known, as in some virtual machines.
struct PciPlace {
  uint64_t root = 0;  ///< hash of the root complex
  uint64_t port = 0;  ///< hash of the root port, below which there may be switches
  std::string slot;   ///< "32.0 GT/s PCIe x16": the fastest, and the lanes that are in use
};

/// `address`: "0000:3b:00.0".
PciPlace pci_place(const std::string& address, const std::string& devices = "/sys/bus/pci/devices");

/// The first line of a small file, without what no fact may hold (machine.hpp); empty if there is none.
std::string first_line(const std::string& path);

}  // namespace onehop
