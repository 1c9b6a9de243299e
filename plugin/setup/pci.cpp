#include "plugin/setup/pci.hpp"

#include <filesystem>
#include <fstream>

#include "plugin/hash.hpp"
#include "plugin/plan_file/machine.hpp"

namespace onehop {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::erase_if(line, [](char c) { return !is_fact_character(c); });
  return line.substr(0, 64);
}

PciPlace pci_place(const std::string& address, const std::string& devices) {
  PciPlace place;
  std::error_code error;
  const std::filesystem::path device = std::filesystem::canonical(devices + "/" + address, error);
  if (error) return place;
  // .../pci0000:3a/0000:3a:01.0/.../0000:3b:00.0
  std::string path;
  for (const auto& part : device) {
    path += "/" + part.string();
    if (place.root != 0) {
      place.port = Hash().add(path).value();
      break;
    }
    if (part.string().starts_with("pci")) place.root = Hash().add(path).value();
  }
  const std::string speed = first_line(device / "max_link_speed"),
                    width = first_line(device / "current_link_width");
  if (!speed.empty() || !width.empty()) place.slot = speed + " x" + width;
  return place;
}

}  // namespace onehop
