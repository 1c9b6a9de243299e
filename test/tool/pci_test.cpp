// The PCI tree from recorded /sys folders, and its picture.
#include "tools/onehop/pci.hpp"

#include <fmt/format.h>

#include "test/tool/fake_root.hpp"

namespace onehop::tool::test {
namespace {

TEST(Pci, OneSwitch) {
  const FakeRoot root;
  root.one_switch(0);
  const PciTree tree = read_pci_tree(root.path());
  EXPECT_EQ(draw(tree, {{"0000:04:00.0", "GPU 1: RTX PRO 6000"}}),
            "root complex 0000:00, NUMA node 0\n"
            "└─ 0000:00:01.0 bridge 10b5:8796, link unknown\n"
            "   └─ 0000:01:00.0 bridge 10b5:8796, link unknown\n"
            "      ├─ 0000:02:00.0 bridge 10b5:8796, link unknown\n"
            "      │  └─ 0000:03:00.0 GPU 10de:2bb1, x16, Gen1 of Gen5, BAR 1 32 GiB\n"
            "      └─ 0000:02:01.0 bridge 10b5:8796, link unknown\n"
            "         └─ 0000:04:00.0 GPU 1: RTX PRO 6000, x16, Gen1 of Gen5, BAR 1 32 GiB\n");
  EXPECT_EQ(tree.meet("0000:03:00.0", "0000:04:00.0"), "0000:01:00.0");
}

TEST(Pci, TwoRootComplexes) {
  const FakeRoot root;
  for (const std::string bus : {"00", "80"}) {
    root.device("pci0000:" + bus + "/0000:" + bus + ":01.0", FakeRoot::bridge(0));
    root.device("pci0000:" + bus + "/0000:" + bus + ":01.0/0000:" + (bus == "00" ? "01" : "81") + ":00.0",
                FakeRoot::gpu(bus == "00" ? "0" : "1"));
  }
  const PciTree tree = read_pci_tree(root.path());
  EXPECT_EQ(draw(tree, {}),
            "root complex 0000:00, NUMA node 0\n"
            "└─ 0000:00:01.0 bridge 10b5:8796, link unknown\n"
            "   └─ 0000:01:00.0 GPU 10de:2bb1, x16, Gen1 of Gen5, BAR 1 32 GiB\n"
            "root complex 0000:80, NUMA node 1\n"
            "└─ 0000:80:01.0 bridge 10b5:8796, link unknown\n"
            "   └─ 0000:81:00.0 GPU 10de:2bb1, x16, Gen1 of Gen5, BAR 1 32 GiB\n");
  EXPECT_EQ(tree.meet("0000:01:00.0", "0000:81:00.0"), "");
}

// Protects: the registers taken for the window into the memory. Data-centre GPUs since Hopper have them in a
// prefetchable window of 64 bits as well, before it.
TEST(Pci, Bar1IsTheWindowIntoTheMemory) {
  const auto line = [](uint64_t begin, uint64_t bytes, const char* flags) {
    return bytes == 0 ? std::string("0x0000000000000000 0x0000000000000000 0x0000000000000000\n")
                      : fmt::format("{:#018x} {:#018x} {}\n", begin, begin + bytes - 1, flags);
  };
  constexpr const char *kWide = "0x000000000014220c", *kNarrow = "0x0000000000040200";
  const std::string none = line(0, 0, "");
  const auto bar1 = [&](const std::string& resource) {
    const FakeRoot root;
    auto files = FakeRoot::gpu("0");
    files["resource"] = resource;
    root.device("pci0000:00/0000:00:06.0", files);
    return read_pci_tree(root.path()).devices.at("0000:00:06.0").bar1_bytes;
  };
  constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  EXPECT_EQ(bar1(line(0x42000000000, 16 * kMiB, kWide) + none + line(0x20000000000, 256 * kGiB, kWide) +
                 none + line(0x41000000000, 32 * kMiB, kWide) + none),
            256 * kGiB);
  EXPECT_EQ(bar1(line(0xf0000000, 16 * kMiB, kNarrow) + line(0x20000000000, 256 * kMiB, kWide) + none +
                 line(0x30000000000, 32 * kMiB, kWide) + none + none),
            256 * kMiB);
  EXPECT_EQ(bar1(line(0xf0000000, 16 * kMiB, kNarrow)), std::nullopt);
  EXPECT_EQ(bar1("no numbers"), std::nullopt);
}

TEST(Pci, AcsIsReadWhereItMayBe) {
  for (const auto& [control, redirect] : {std::pair(0x1D, Redirect::kOn), std::pair(0x08, Redirect::kOn),
                                          std::pair(0x11, Redirect::kOff), std::pair(0, Redirect::kOff)}) {
    const FakeRoot root;
    root.one_switch(control);
    EXPECT_EQ(read_pci_tree(root.path()).devices.at("0000:02:00.0").redirect, redirect) << control;
  }
  const FakeRoot root;
  auto files = FakeRoot::bridge(0x1D);
  // What a user other than root sees, and nothing at all.
  for (const size_t bytes : {64, 0}) {
    files["config"] = FakeRoot::config(0x1D).substr(0, bytes);
    root.device("pci0000:00/0000:00:0" + std::to_string(bytes / 64 + 1) + ".0", files);
  }
  for (const auto& [address, device] : read_pci_tree(root.path()).devices)
    EXPECT_EQ(device.redirect, Redirect::kUnknown) << address;
}

// Protects: a damaged list of capabilities that leads back to itself or out of the space.
TEST(Pci, ADamagedConfigurationSpaceEnds) {
  for (const uint32_t header : {0x10010002u, 0xFFF00002u, 0x00300002u, 0xFFFFFFFFu}) {
    const FakeRoot root;
    auto files = FakeRoot::bridge(0);
    for (size_t i = 0; i < 4; ++i) files["config"][0x100 + i] = static_cast<char>(header >> (8 * i));
    root.device("pci0000:00/0000:00:01.0", files);
    EXPECT_EQ(read_pci_tree(root.path()).devices.at("0000:00:01.0").redirect, Redirect::kOff);
  }
}

TEST(Pci, AVirtualMachineShowsLittle) {
  const FakeRoot root;
  for (const std::string slot : {"05", "06"})
    root.device("pci0000:00/0000:00:" + slot + ".0", {{"class", "0x030200"},
                                                      {"vendor", "0x10de"},
                                                      {"device", "0x2335"},
                                                      {"numa_node", "-1"},
                                                      {"current_link_speed", "Unknown"},
                                                      {"current_link_width", "0"},
                                                      {"max_link_width", "255"}});
  EXPECT_EQ(draw(read_pci_tree(root.path()), {}),
            "root complex 0000:00\n"
            "├─ 0000:00:05.0 GPU 10de:2335, link unknown\n"
            "└─ 0000:00:06.0 GPU 10de:2335, link unknown\n");
}

TEST(Pci, AContainerMayShowNothing) {
  const FakeRoot root;
  const PciTree tree = read_pci_tree(root.path());
  EXPECT_FALSE(tree.readable);
  EXPECT_EQ(draw(tree, {}), "");
  // A device folder without a single file is a device of which nothing is known.
  root.device("pci0000:00/0000:00:01.0", {{"nothing", ""}});
  EXPECT_TRUE(read_pci_tree(root.path()).gpus().empty());
}

}  // namespace
}  // namespace onehop::tool::test
