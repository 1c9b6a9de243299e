// A folder that looks like / to `onehop doctor`: recorded trees of /sys in a few words.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "test/folder.hpp"

namespace onehop::tool::test {

class FakeRoot {
 public:
  const std::string& path() const { return folder_.path(); }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  /// `way`: from the root complex, as in "pci0000:00/0000:00:01.0/0000:01:00.0".
  void device(const std::string& way, const std::map<std::string, std::string>& files) const {
    const std::string folder = "sys/devices/" + way;
    for (const auto& [name, text] : files) write(folder + "/" + name, text + (name == "config" ? "" : "\n"));
    const std::filesystem::path devices = folder_ / "sys/bus/pci/devices";
    std::filesystem::create_directories(devices);
    std::filesystem::create_directory_symlink("../../../devices/" + way,
                                              devices / way.substr(way.rfind('/') + 1));
  }

  /// A configuration space whose ACS control register holds `control`.
  static std::string config(int control) {
    std::string bytes(4096, '\0');
    const auto put = [&](size_t at, uint32_t value) {
      for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
    };
    put(0x100, 0x14820001u);  // another capability first
    put(0x148, 0x0001000Du);
    put(0x14C, static_cast<uint32_t>(control) << 16 | 0x5F);
    return bytes;
  }

  static std::map<std::string, std::string> bridge(int acs_control) {
    return {
        {"class", "0x060400"}, {"vendor", "0x10b5"}, {"device", "0x8796"}, {"config", config(acs_control)}};
  }

  static std::map<std::string, std::string> gpu(const std::string& node) {
    return {{"class", "0x030200"},
            {"vendor", "0x10de"},
            {"device", "0x2bb1"},
            {"numa_node", node},
            {"current_link_speed", "2.5 GT/s PCIe"},
            {"max_link_speed", "32.0 GT/s PCIe"},
            {"current_link_width", "16"},
            {"max_link_width", "16"},
            {"resource",
             "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
             "0x0000020000000000 0x00000207ffffffff 0x000000000014220c\n"
             "0x0000000000000000 0x0000000000000000 0x0000000000000000"}};
  }

  /// Two GPUs below one switch.
  void one_switch(int acs_control) const {
    device("pci0000:00/0000:00:01.0", bridge(0));
    device("pci0000:00/0000:00:01.0/0000:01:00.0", bridge(0));
    for (const std::string n : {"0", "1"}) {
      const std::string port = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:0" + n + ".0";
      device(port, bridge(acs_control));
      device(port + "/0000:0" + std::to_string(3 + std::stoi(n)) + ":00.0", gpu("0"));
    }
    device("pci0000:00/0000:00:1f.0", {{"class", "0x060100"}, {"vendor", "0x8086"}, {"device", "0x1"}});
  }

 private:
  const onehop::test::Folder folder_;
};

}  // namespace onehop::tool::test
