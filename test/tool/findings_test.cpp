// What `onehop doctor` finds, machine by machine.
#include "tools/onehop/findings.hpp"

#include "test/tool/fake_root.hpp"
#include "tools/onehop/doctor_report.hpp"

namespace onehop::tool::test {
namespace {

/// A machine on which nothing is wrong: two GPUs below one switch.
Facts good(const FakeRoot& root) {
  root.one_switch(0);
  Facts facts;
  facts.pci = read_pci_tree(root.path());
  DriverFacts driver;
  driver.cuda_library = driver.nvml_library = true;
  driver.driver = "580.95.05";
  driver.cuda_version = 13000;
  for (int i = 0; i < 2; ++i) {
    GpuFacts gpu;
    gpu.index = i;
    gpu.name = "GPU";
    gpu.pci = i == 0 ? "0000:03:00.0" : "0000:04:00.0";
    gpu.capability = 120;
    gpu.link_width = gpu.link_width_max = 16;
    gpu.memory_bytes = gpu.bar1_bytes = uint64_t{32} << 30;
    driver.gpus.push_back(gpu);
    PairFacts pair;
    pair.from = i;
    pair.to = 1 - i;
    pair.read = pair.write = "ok";
    pair.access = "yes";
    driver.pairs.push_back(pair);
  }
  facts.driver = driver;
  facts.libraries.push_back(
      {{"/usr/lib/libnccl.so.2", "test"}, NcclLibrary{"/usr/lib/libnccl.so.2", nccl(2, 28, 9), ""}});
  facts.plugin = std::string("/opt/libnccl-net-onehop.so");
  facts.built_with_cuda = "13.0";
  facts.oldest_arch = 75;
  return facts;
}

/// "off:no-driver note:no-nccl"
std::string found(const Facts& facts) {
  std::string text;
  for (const Finding& f : find(facts)) {
    text += (text.empty() ? "" : " ") + std::string(name_of(f.severity)) + ":" + f.id;
    EXPECT_FALSE(f.what.empty() || f.why.empty() || f.mend.empty()) << f.id;
  }
  // Both reports can be made of any facts.
  EXPECT_FALSE(report_text(facts, find(facts)).empty());
  EXPECT_TRUE(nlohmann::json::accept(report_json(facts, find(facts))));
  return text;
}

/// The good machine with one thing changed.
template <class Change>
std::string found_after(Change&& change) {
  const FakeRoot root;
  Facts facts = good(root);
  change(facts);
  return found(facts);
}

TEST(Findings, NoneWhereNothingIsWrong) {
  EXPECT_EQ(found_after([](Facts&) {}), "");
}

TEST(Findings, WithoutADriverOrGpu) {
  EXPECT_EQ(found_after([](Facts& f) { f.driver = DriverFacts{}; }), "off:no-driver");
  EXPECT_EQ(found_after([](Facts& f) { f.driver = Error{"it did not answer within 60 s"}; }),
            "off:driver-no-answer");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus.clear(), f.driver->pairs.clear(); }), "off:no-gpu");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus.resize(1), f.driver->pairs.clear(); }), "off:one-gpu");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->cuda_version = 12080; }), "off:driver-too-old");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->trouble = "cuInit: no"; }), "off:cuda-does-not-start");
}

TEST(Findings, OfTheBuild) {
  EXPECT_EQ(found_after([](Facts& f) { f.plugin = Error{"not found"}; }), "off:no-plugin");
  EXPECT_EQ(found_after([](Facts& f) { f.built_with_cuda = ""; }), "off:built-without-cuda");
  EXPECT_EQ(found_after([](Facts& f) { f.oldest_arch = 130; }), "off:no-kernels");
}

TEST(Findings, OfGpusAndTheirLinks) {
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus[1].bar1_bytes = 256 << 20; }), "risk:small-bar");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus[1].link_width = 4; }), "risk:narrow-link");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus[1].capability = 0; }), "note:gpu-not-visible");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->gpus[0].mig = true; }), "risk:mig");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->pairs[0].access = "no"; }), "risk:no-peer-access");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->pairs[0].measured = "wrong data"; }), "risk:copies-fail");
  EXPECT_EQ(found_after([](Facts& f) { f.driver->pairs[0].measured = "right"; }), "");
}

// Protects: what is not known is not called wrong.
TEST(Findings, UnknownIsNotWrong) {
  EXPECT_EQ(found_after([](Facts& f) {
              for (GpuFacts& g : f.driver->gpus) g.link_width = 0, g.bar1_bytes = 0, g.link_generation = 0;
              for (PairFacts& p : f.driver->pairs) p.access = "", p.read = p.write = "unknown";
              f.system = {};
            }),
            "");
  EXPECT_EQ(found_after([](Facts& f) { f.pci = {}; }), "note:no-tree");
}

TEST(Findings, OfBridgesAndTheIommu) {
  const FakeRoot root;
  Facts facts = good(root);
  facts.pci.devices["0000:02:01.0"].redirect = Redirect::kOn;
  EXPECT_EQ(found(facts), "risk:acs");
  EXPECT_NE(find(facts)[0].what.find("0000:02:01.0"), std::string::npos) << "the bridge is named";
  facts.pci.devices["0000:03:00.0"].iommu = "DMA-FQ";
  EXPECT_EQ(found(facts), "risk:acs risk:iommu");
  facts.pci.devices["0000:03:00.0"].iommu = "identity";
  EXPECT_EQ(found(facts), "risk:acs");
  facts.pci.devices["0000:02:01.0"].redirect = Redirect::kUnknown;
  EXPECT_EQ(found(facts), "note:acs-unknown");
  facts.pci.devices["0000:02:01.0"].redirect = Redirect::kOff;
  facts.pci.devices["0000:02:01.0"].parent = "pci0000:80";
  EXPECT_EQ(found(facts), "note:several-roots");
}

TEST(Findings, OfLibraries) {
  EXPECT_EQ(found_after([](Facts& f) { f.libraries[0].library->version = nccl(2, 99); }), "off:nccl-unknown");
  EXPECT_EQ(found_after([](Facts& f) { f.libraries[0].library->refused = "an unexpected jump"; }),
            "off:nccl-refused");
  EXPECT_EQ(found_after([](Facts& f) { f.libraries[0].library = Error{"file too short"}; }),
            "off:nccl-broken");
  EXPECT_EQ(found_after([](Facts& f) { f.libraries.clear(); }), "note:no-nccl");
}

TEST(Findings, OfSettings) {
  const auto with = [](const char* name, const char* value) {
    return found_after([&](Facts& f) { f.environment[name] = value; });
  };
  EXPECT_EQ(with("ONEHOP_ALGO", "fast"), "off:bad-setting");
  EXPECT_EQ(with("ONEHOP_ALGOO", "auto"), "note:unknown-setting");
  EXPECT_EQ(with("ONEHOP_ENABLE", "0"), "off:switched-off");
  EXPECT_EQ(with("NCCL_ALGO", "ring"), "off:pinned");
  EXPECT_EQ(with("NCCL_ALGO", "^nvls"), "");
  EXPECT_EQ(with("NCCL_PROTO", "LL"), "off:pinned");
  EXPECT_EQ(with("NCCL_P2P_DISABLE", "1"), "note:p2p-switch");
  EXPECT_EQ(with("NCCL_P2P_DISABLE", "0"), "");
}

TEST(Findings, OfTheSystem) {
  EXPECT_EQ(found_after([](Facts& f) { f.system.no_shared_pages = "memfd_create: denied"; }),
            "risk:no-shared-pages");
  EXPECT_EQ(found_after([](Facts& f) { f.system.virtual_machine = true; }), "note:virtual-machine");
}

TEST(Findings, OfAProcess) {
  const auto with = [](const auto& change) {
    return found_after([&](Facts& f) {
      f.process.emplace();
      f.process->pid = 5;
      f.process->plugin = "/opt/libnccl-net-onehop.so";
      f.process->nccl = {"/usr/lib/libnccl.so.2"};
      StatisticsSnapshot statistics;
      statistics.communicators.push_back({.state = RecordState::kOn, .rank = 0, .ranks = 2});
      statistics.communicators[0].statistics.count_taken(8, Method::kOneShot);
      f.process->statistics = statistics;
      change(*f.process);
    });
  };
  EXPECT_EQ(with([](ProcessFacts&) {}), "");
  EXPECT_EQ(with([](ProcessFacts& p) { p.trouble = "there is no such process"; }), "off:process-unknown");
  EXPECT_EQ(with([](ProcessFacts& p) { p.plugin = ""; }), "off:not-loaded");
  EXPECT_EQ(with([](ProcessFacts& p) { p.nccl.clear(); }), "note:no-nccl-yet");
  EXPECT_EQ(with([](ProcessFacts& p) { p.statistics = Error{"no page"}; }), "off:not-active");
  EXPECT_EQ(with([](ProcessFacts& p) { p.statistics->communicators.clear(); }), "note:no-communicator");
  EXPECT_EQ(with([](ProcessFacts& p) { p.statistics->communicators[0].statistics = {}; }),
            "note:nothing-taken");
  EXPECT_EQ(with([](ProcessFacts& p) { p.statistics->communicators[0].state = RecordState::kOff; }),
            "off:communicator-off");
  EXPECT_EQ(with([](ProcessFacts& p) { p.environment["ONEHOP_ENABLE"] = "0"; }), "off:switched-off");
}

TEST(SystemFacts, OfAFakeRoot) {
  const FakeRoot root;
  EXPECT_FALSE(read_system(root.path()).virtual_machine) << "unknown";
  EXPECT_EQ(read_system(root.path()).kernel_driver, "");
  root.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12\n");
  root.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor lahf\nbugs\t\t:\n");
  root.write("proc/1/cgroup", "0::/docker/0123\n");
  root.write("proc/self/status", "Name:\tx\nSeccomp:\t2\n");
  const SystemFacts facts = read_system(root.path());
  EXPECT_EQ(facts.kernel_driver, "580.95.05");
  EXPECT_EQ(facts.virtual_machine, true);
  EXPECT_EQ(facts.container, "docker");
  EXPECT_EQ(facts.seccomp, 2);
  root.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu lahf\n");
  EXPECT_EQ(read_system(root.path()).virtual_machine, false);
}

}  // namespace
}  // namespace onehop::tool::test
