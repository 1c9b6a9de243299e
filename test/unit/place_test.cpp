// What a plan file knows a machine by.
#include "plugin/setup/place.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "kernels/geometry.hpp"
#include "plugin/setup/pci.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop::test {
namespace {

struct Tables {
  std::vector<Hello> hellos;
  std::vector<Place> places;

  Machine machine() const { return machine_of(hellos, places); }
};

/// Four GPUs, two on each of two root complexes, a process each, NVLink between 0 and 1.
Tables four() {
  Tables t;
  t.hellos.resize(4);
  t.places.resize(4);
  for (uint32_t r = 0; r < 4; ++r) {
    t.hellos[r].gpu.fill(static_cast<unsigned char>(r + 1));
    t.hellos[r].process = 70 + r;
    put_text(t.hellos[r].version, "0.1.0");
    Place& place = t.places[r];
    put_text(place.model, "NVIDIA A");
    put_text(place.driver, "CUDA 13.0, 580.1");
    put_text(place.slot, "16.0 GT/s PCIe x16");
    place.root = 1000 + r / 2;
    place.port = 2000 + r;
    place.capability = 80;
    place.nccl = 22809;
    place.multiprocessors = 108;
    place.seen = 0xF & ~(1u << r);
  }
  t.places[0].linked = 2;
  t.places[1].linked = 1;
  return t;
}

TEST(Machine, IsDescribed) {
  const Machine machine = four().machine();
  EXPECT_EQ(machine[Fact::kOnehop], "0.1.0");
  EXPECT_EQ(machine[Fact::kGpus], "4 x NVIDIA A (8.0, 108 multiprocessors)");
  EXPECT_EQ(machine[Fact::kLinks], "PCI 0.0.0 0.1.1 1.2.2 1.3.3; 4 x 16.0 GT/s PCIe x16; NVLink 0-1");
  EXPECT_EQ(machine[Fact::kDriver], "CUDA 13.0, 580.1");
  EXPECT_EQ(machine[Fact::kNccl], "2.28.9");
  EXPECT_EQ(machine[Fact::kRanks], "4");
  EXPECT_EQ(machine[Fact::kProcesses], "4");
}

// Protects: the same plan after a reboot, in another container, with other process ids, or on the next
// machine of the same build.
TEST(Machine, IsTheSameWhateverItsPartsAreCalled) {
  const Machine machine = four().machine();
  Tables t = four();
  for (uint32_t r = 0; r < 4; ++r) {
    t.hellos[r].gpu.fill(static_cast<unsigned char>(200 - r));
    t.hellos[r].process *= 3;
    t.hellos[r].pid = 5;
    t.hellos[r].host = t.hellos[r].nonce = t.hellos[r].free_memory = 9;
    t.places[r].root ^= 0xFFFF;
    t.places[r].port ^= 0xFFFF;
  }
  EXPECT_EQ(t.machine(), machine);
}

TEST(Machine, IsAnotherWhereItDiffers) {
  const std::pair<Fact, std::function<void(Tables&)>> changes[] = {
      {Fact::kOnehop, [](Tables& t) { put_text(t.hellos[0].version, "0.2.0"); }},
      {Fact::kGpus, [](Tables& t) { put_text(t.places[2].model, "NVIDIA B"); }},
      {Fact::kGpus, [](Tables& t) { t.places[2].capability = 86; }},
      {Fact::kGpus, [](Tables& t) { t.places[3].multiprocessors = 54; }},
      {Fact::kLinks, [](Tables& t) { t.places[1].root = 1001; }},
      {Fact::kLinks, [](Tables& t) { t.places[1].port = 2000; }},
      {Fact::kLinks, [](Tables& t) { put_text(t.places[1].slot, "16.0 GT/s PCIe x8"); }},
      {Fact::kLinks, [](Tables& t) { t.places[2].linked = 8; }},
      {Fact::kLinks, [](Tables& t) { t.places[0].linked = t.places[1].linked = 0; }},
      {Fact::kLinks,
       [](Tables& t) {
         for (Place& p : t.places) p.seen = 0;
       }},
      {Fact::kLinks, [](Tables& t) { t.hellos[1].gpu = t.hellos[0].gpu; }},
      {Fact::kDriver, [](Tables& t) { put_text(t.places[0].driver, "CUDA 13.0, 580.2"); }},
      {Fact::kNccl,
       [](Tables& t) {
         for (Place& p : t.places) p.nccl = 23007;
       }},
      {Fact::kNccl,
       [](Tables& t) {
         for (Hello& h : t.hellos) h.avoids_peers = 1;
       }},
      {Fact::kRanks, [](Tables& t) { t.hellos.pop_back(), t.places.pop_back(); }},
      {Fact::kProcesses, [](Tables& t) { t.hellos[3].process = t.hellos[2].process; }},
  };
  const Machine machine = four().machine();
  for (const auto& [fact, change] : changes) {
    Tables t = four();
    change(t);
    EXPECT_NE(t.machine()[fact], machine[fact])
        << kFactNames[static_cast<size_t>(fact)] << ": " << machine[fact];
  }
}

// Protects: a name from a driver ends up in log lines and files.
TEST(Machine, HasOnlyPlainText) {
  Tables t = four();
  for (size_t i = 0; i < t.places[0].model.size(); ++i) t.places[0].model[i] = static_cast<char>(i * 5 + 1);
  t.places[1].slot.fill('"');
  for (const std::string& fact : t.machine().facts)
    for (const char c : fact) EXPECT_TRUE(is_fact_character(c)) << fact;
}

TEST(MostBlocks, AreDividedWhereRanksShareAGpu) {
  Tables t = four();
  EXPECT_EQ(most_blocks_of(t.hellos, t.places), kMaxBlocks);
  t.places[2].multiprocessors = 40;
  EXPECT_EQ(most_blocks_of(t.hellos, t.places), 20u);
  t.places[2].multiprocessors = 108;
  for (Hello& hello : t.hellos) hello.gpu = {};
  EXPECT_EQ(most_blocks_of(t.hellos, t.places), 13u);
  for (Place& place : t.places) place.multiprocessors = 0;
  EXPECT_EQ(most_blocks_of(t.hellos, t.places), 1u);
}

TEST(PciPlace, IsReadFromTheTree) {
  namespace fs = std::filesystem;
  char name[] = "/tmp/onehop-pci-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const fs::path root = name, tree = root / "tree";
  fs::create_directories(root / "devices");
  const auto add = [&](const std::string& address, const std::string& where, const char* width) {
    fs::create_directories(tree / where / address);
    std::ofstream(tree / where / address / "max_link_speed") << "32.0 GT/s PCIe\n";
    std::ofstream(tree / where / address / "current_link_width") << width << "\n";
    fs::create_symlink(tree / where / address, root / "devices" / address);
    return pci_place(address, root / "devices");
  };
  const PciPlace a = add("0000:3d:00.0", "pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0", "16"),
                 b = add("0000:3e:00.0", "pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:01.0", "16"),
                 c = add("0000:40:00.0", "pci0000:3a/0000:3a:02.0", "8"),
                 d = add("0000:81:00.0", "pci0000:80/0000:80:01.0", "16");
  EXPECT_EQ(a.slot, "32.0 GT/s PCIe x16");
  EXPECT_EQ(c.slot, "32.0 GT/s PCIe x8");
  EXPECT_EQ(a.port, b.port) << "behind one switch";
  EXPECT_NE(a.port, c.port);
  EXPECT_EQ(a.root, c.root);
  EXPECT_NE(a.root, d.root);
  const PciPlace nowhere = pci_place("0000:99:00.0", root / "devices");
  EXPECT_EQ(nowhere.root, 0u);
  EXPECT_EQ(nowhere.slot, "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace onehop::test
