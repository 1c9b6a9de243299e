#include "tools/onehop/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plugin/nccl_releases.hpp"
#include "plugin/nccl_switches.hpp"
#include "plugin/settings.hpp"
#include "tools/onehop/units.hpp"

namespace onehop::tool {
namespace {

constexpr const char* kMapsPeers =
    "GPUs then reach each other's memory wrongly, slowly or not at all; onehop finds out before it uses it, "
    "and takes "
    "host memory instead";

class Search {
 public:
  explicit Search(const Facts& facts) : f_(facts) {}

  std::vector<Finding> run() {
    build();
    driver();
    if (f_.driver) gpus(*f_.driver);
    bridges();
    libraries();
    settings(f_.process ? f_.process->environment : f_.environment);
    system();
    if (f_.process) process(*f_.process);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
    return std::move(found_);
  }

 private:
  void add(Severity severity, const char* id, std::string what, std::string why, std::string mend) {
    found_.push_back({severity, id, std::move(what), std::move(why), std::move(mend)});
  }

  void build() {
    if (!f_.plugin)
      add(Severity::kOff, "no-plugin", f_.plugin.reason(), "there is nothing that a job could load",
          "build or install libnccl-net-onehop.so, or name it with --plugin");
    if (f_.built_with_cuda.empty())
      add(Severity::kOff, "built-without-cuda", "this onehop was built without CUDA",
          "it has no kernels for GPUs",
          "build it with CUDA: meson setup build -Dcuda=enabled, or tools/setup");
  }

  void driver() {
    if (!f_.driver) {
      add(Severity::kOff, "driver-no-answer", "the NVIDIA driver did not answer: " + f_.driver.reason(),
          "no job can use the GPUs either",
          "look into the kernel log (dmesg) for NVRM and Xid lines; restart the machine");
      return;
    }
    const DriverFacts& d = *f_.driver;
    if (!d.cuda_library) {
      const bool hardware = !f_.pci.gpus().empty() || !f_.system.kernel_driver.empty();
      add(Severity::kOff, "no-driver", "there is no NVIDIA driver here: libcuda.so.1 is not found",
          "neither NCCL nor onehop can use a GPU without it",
          hardware && !f_.system.container.empty()
              ? "start the container with the NVIDIA container toolkit (docker run --gpus all ...)"
              : "install the driver, or run this on the machine that has the GPUs");
      return;
    }
    if (!d.trouble.empty())
      add(Severity::kOff, "cuda-does-not-start", "CUDA does not start: " + d.trouble,
          "no job can use the GPUs",
          "see that CUDA_VISIBLE_DEVICES names GPUs and that /dev/nvidia* are there; compare the driver's "
          "version in nvidia-smi and /proc/driver/nvidia/version, and restart after an update");
    if (const int built = static_cast<int>(std::strtol(f_.built_with_cuda.c_str(), nullptr, 10));
        d.cuda_version != 0 && built > d.cuda_version / 1000)
      add(Severity::kOff, "driver-too-old",
          fmt::format("the driver{} is for CUDA {}.{}, and onehop was built with CUDA {}",
                      d.driver.empty() ? "" : " " + d.driver, d.cuda_version / 1000,
                      d.cuda_version % 1000 / 10, f_.built_with_cuda),
          "its kernels cannot be loaded", "update the driver, or build onehop with an older CUDA release");
  }

  void gpus(const DriverFacts& d) {
    if (!d.cuda_library) return;
    if (d.gpus.empty()) {
      add(Severity::kOff, "no-gpu", "the driver shows no GPU", "there is nothing to reduce between",
          f_.system.container.empty() ? "look whether the GPUs are in lspci, and into the kernel log (dmesg)"
                                      : "give the container its GPUs (docker run --gpus all ...)");
      return;
    }
    if (d.gpus.size() == 1)
      add(Severity::kOff, "one-gpu", "there is one GPU here",
          "a communicator of one rank has nothing to send", "none is needed: NCCL serves such jobs");
    std::vector<std::string> invisible, old, small, narrow;
    bool mig = false;
    for (const GpuFacts& g : d.gpus) {
      const std::string name = fmt::format("GPU {}", g.index);
      if (g.capability == 0 && d.trouble.empty()) invisible.push_back(name);
      if (g.capability != 0 && g.capability < f_.oldest_arch) old.push_back(name);
      if (g.bar1_bytes != 0 && g.memory_bytes != 0 && g.bar1_bytes < g.memory_bytes / 2)
        small.push_back(
            fmt::format("{} ({} of {})", name, size_text(g.bar1_bytes), size_text(g.memory_bytes)));
      if (g.link_width != 0 && g.link_width < g.link_width_max)
        narrow.push_back(fmt::format("{} (x{} of x{})", name, g.link_width, g.link_width_max));
      mig = mig || g.mig;
    }
    if (!invisible.empty())
      add(Severity::kNote, "gpu-not-visible", fmt::format("CUDA does not see {}", fmt::join(invisible, ", ")),
          "jobs of this environment use the others only", "look at CUDA_VISIBLE_DEVICES");
    if (!old.empty())
      add(Severity::kOff, "no-kernels", fmt::format("onehop has no kernels for {}", fmt::join(old, ", ")),
          fmt::format("it was built for compute capability {}.{} and newer", f_.oldest_arch / 10,
                      f_.oldest_arch % 10),
          "build it with -Dgpu_archs for these GPUs");
    if (mig)
      add(Severity::kRisk, "mig", "MIG is on", "parts of a GPU cannot reach each other's memory",
          "nvidia-smi -mig 0, if the job is to use whole GPUs");
    if (!small.empty())
      add(Severity::kRisk, "small-bar",
          "the window into the memory is small (BAR 1): " + fmt::format("{}", fmt::join(small, ", ")),
          "peer access over PCIe goes through it; where it is small the driver may refuse peer access, or it "
          "fails",
          "switch on Resizable BAR and Above 4G Decoding in the BIOS");
    if (!narrow.empty())
      add(Severity::kRisk, "narrow-link",
          fmt::format("the PCIe link is narrower than it could be: {}", fmt::join(narrow, ", ")),
          "everything between GPUs goes over it", "look at the slot, its riser, and bifurcation in the BIOS");
    pairs(d);
  }

  void pairs(const DriverFacts& d) {
    std::vector<std::string> no_access, wrong;
    std::set<std::string> reasons;
    for (const PairFacts& p : d.pairs) {
      const std::string pair = fmt::format("{}->{}", p.from, p.to);
      if (p.access == "no") no_access.push_back(pair);
      for (const std::string& status : {p.read, p.write})
        if (p.access == "no" && !status.empty() && status != "ok" && status != "unknown")
          reasons.insert(status);
      if (!p.measured.empty() && p.measured != "right") wrong.push_back(pair + " " + p.measured);
    }
    if (!wrong.empty())
      add(Severity::kRisk, "copies-fail", fmt::format("copies between GPUs fail: {}", fmt::join(wrong, ", ")),
          "NCCL and onehop over peer access would give wrong results or hang; onehop's probe keeps it away "
          "from it",
          "see the findings about ACS and IOMMU; NCCL_P2P_DISABLE=1 until it is mended");
    if (!no_access.empty()) {
      add(Severity::kRisk, "no-peer-access",
          fmt::format(
              "no peer access between {} of {} pairs of GPUs ({}{})", no_access.size(), d.pairs.size(),
              fmt::join(no_access.begin(),
                        no_access.begin() + static_cast<ptrdiff_t>(std::min<size_t>(no_access.size(), 8)),
                        " "),
              no_access.size() > 8 ? " ..." : ""),
          "onehop uses host memory there, which takes longer" +
              (reasons.empty() ? std::string()
                               : fmt::format("; the driver says: {}", fmt::join(reasons, "; "))),
          "none with GPUs whose driver does not offer it; else see the findings about BAR, ACS and IOMMU");
    }
  }

  void bridges() {
    const std::vector<std::string> gpus = f_.pci.gpus();
    if (!f_.pci.readable || gpus.empty()) {
      if (f_.driver && !f_.driver->gpus.empty())
        add(Severity::kNote, "no-tree", "the PCI devices are not to be seen here",
            "nothing is known of root complexes, ACS and the IOMMU",
            "run this on the host, outside the container");
      return;
    }
    std::set<std::string> redirecting, unknown, translated, tops;
    for (const std::string& gpu : gpus) {
      const std::vector<std::string> way = f_.pci.way_up(gpu);
      tops.insert(way.back());
      for (const std::string& name : way) {
        const auto device = f_.pci.devices.find(name);
        if (device == f_.pci.devices.end() || !device->second.is_bridge()) continue;
        if (device->second.redirect == Redirect::kOn) redirecting.insert(name);
        if (device->second.redirect == Redirect::kUnknown) unknown.insert(name);
      }
      if (f_.pci.devices.at(gpu).iommu.rfind("DMA", 0) == 0) translated.insert(gpu);
    }
    if (gpus.size() < 2) return;
    if (!redirecting.empty()) {
      add(Severity::kRisk, "acs",
          fmt::format("ACS redirects what GPUs send each other, at {}", fmt::join(redirecting, ", ")),
          std::string("every word goes up to the root complex") +
              (translated.empty() ? "" : " and through the IOMMU") + "; " + kMapsPeers,
          "switch ACS off in the BIOS, or clear its control register at these bridges (setpci -s ADDRESS "
          "ECAP_ACS+6.w=0000, "
          "as root, after each start), unless virtual machines need it");
    } else if (!unknown.empty()) {
      add(Severity::kNote, "acs-unknown",
          fmt::format("the ACS state of {} bridges above the GPUs is not to be read", unknown.size()),
          "ACS redirection makes peer access slow, or fail", "run this as root");
    }
    if (!translated.empty())
      add(Severity::kRisk, "iommu",
          fmt::format("the IOMMU translates addresses of {}", fmt::join(translated, ", ")), kMapsPeers,
          "start the kernel with iommu=pt, or switch the IOMMU off in the BIOS, unless virtual machines need "
          "it");
    if (tops.size() > 1)
      add(Severity::kNote, "several-roots", fmt::format("the GPUs are below {} root complexes", tops.size()),
          "what goes from one to the other crosses the link between them, and is slower than the rest",
          "none is needed: methods are measured for each communicator (see ONEHOP_ISLANDS)");
  }

  void libraries() {
    for (const LibraryFacts& l : f_.libraries) {
      const std::string where = l.found.path + " (" + l.found.how + ")";
      if (!l.library)
        add(Severity::kOff, "nccl-broken", where + ": " + l.library.reason(),
            "a job that loads it does not run", "install NCCL again");
      else if (!is_known(l.library->version))
        add(Severity::kOff, "nccl-unknown",
            fmt::format("{} is NCCL {}", where, to_string(l.library->version)),
            fmt::format("onehop knows {} to {}, and leaves others alone", to_string({kOldestNccl}),
                        to_string({kNewestNccl / 100 * 100})),
            "use a known release, or a newer onehop");
      else if (!l.library->refused.empty())
        add(Severity::kOff, "nccl-refused", where + " cannot be taken over: " + l.library->refused,
            "onehop leaves this library alone", "use NVIDIA's own build of NCCL");
    }
    if (f_.libraries.empty())
      add(Severity::kNote, "no-nccl", "no libnccl was found in this environment",
          "a job may bring its own, which was not looked at",
          "run this as the job runs: same container, same Python");
  }

  void settings(const Environment& environment) {
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment) entries.push_back(fmt::format("{}={}", name, value));
    std::vector<const char*> pointers;
    pointers.reserve(entries.size() + 1);
    for (const std::string& entry : entries) pointers.push_back(entry.c_str());
    pointers.push_back(nullptr);
    const SettingsReport report = read_settings(pointers.data());
    for (const std::string& error : report.errors)
      add(Severity::kOff, "bad-setting", error, "nothing is guessed from a value that is not allowed",
          "see onehop help env");
    for (const std::string& warning : report.warnings)
      add(Severity::kNote, "unknown-setting", warning, "it may be meant for something else",
          "see onehop help env");
    if (!report.settings.enable)
      add(Severity::kOff, "switched-off", "ONEHOP_ENABLE=0", "every call goes to NCCL",
          "unset ONEHOP_ENABLE");
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
      if (const std::string value = value_of(environment, name); pins_all_reduce(value))
        add(Severity::kOff, "pinned", std::string(name) + "=" + value + " pins what NCCL uses for AllReduce",
            "onehop follows it and takes nothing",
            std::string("unset ") + name + " (it may stand in /etc/nccl.conf or ~/.nccl.conf)");
    for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"})
      if (const std::string value = value_of(environment, name); !value.empty() && value != "0")
        add(Severity::kNote, "p2p-switch", std::string(name) + "=" + value + " is set",
            "where it keeps NCCL from peer access, onehop uses host memory too",
            std::string("unset ") + name + " if it is a remainder");
  }

  void system() {
    const SystemFacts& s = f_.system;
    if (!s.no_shared_pages.empty())
      add(Severity::kRisk, "no-shared-pages",
          "memory cannot be shared by memfd and /proc here: " + s.no_shared_pages,
          "staging in host memory is not possible, and `onehop stats` cannot read a job",
          "allow memfd_create and /proc in the container's seccomp profile");
    if (s.virtual_machine.value_or(false) && f_.driver && f_.driver->gpus.size() > 1)
      add(Severity::kNote, "virtual-machine", "this is a virtual machine",
          "it may show other PCI bridges than there are, and peer access may fail although the driver offers "
          "it",
          "onehop doctor --measure shows whether data arrives");
  }

  void process(const ProcessFacts& p) {
    const std::string name = fmt::format("process {}", p.pid);
    if (!p.trouble.empty()) {
      add(Severity::kOff, "process-unknown", name + ": " + p.trouble, "nothing can be said of it",
          "look at the number, and whose it is");
      return;
    }
    if (p.plugin.empty()) {
      add(Severity::kOff, "not-loaded", name + " has not loaded onehop", "every call goes to NCCL",
          "start it with `onehop run`, or with the variables that `onehop run --dry-run` shows; variables do "
          "not reach "
          "processes that run already");
      return;
    }
    if (p.nccl.empty())
      add(Severity::kNote, "no-nccl-yet", name + " has loaded onehop, but no libnccl.so",
          "there is nothing to take over yet; or its NCCL is part of another file",
          "look again when the job works");
    if (!p.statistics) {
      if (!p.nccl.empty())
        add(Severity::kOff, "not-active", name + " has loaded onehop, but: " + p.statistics.reason(),
            "onehop may have left its NCCL alone",
            "look for a line `OFF for ...` in the job's standard error");
      return;
    }
    bool on = false;
    for (const auto& comm : p.statistics->communicators) {
      on = on || comm.state == RecordState::kOn;
      if (comm.state != RecordState::kOn)
        add(Severity::kOff, "communicator-off",
            fmt::format("{}: a communicator of {} ranks is {}: {}", name, comm.ranks,
                        name_of_state(comm.state), comm.reason),
            "its calls go to NCCL", "the reason says what");
    }
    if (p.statistics->communicators.empty())
      add(Severity::kNote, "no-communicator", name + " has made no small all-reduce on a living communicator",
          "onehop decides at the first one", "look again when the job works");
    else if (on && p.statistics->sums().taken() == 0)
      add(Severity::kNote, "nothing-taken", name + ": onehop is on and has taken nothing",
          "the calls may all be larger than what is taken, or it is early",
          "onehop stats says why calls were passed");
  }

  static const char* name_of_state(RecordState state) {
    return state == RecordState::kOff ? "off" : "failed";
  }

  const Facts& f_;
  std::vector<Finding> found_;
};

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kOff:
      return "off";
    case Severity::kRisk:
      return "risk";
    case Severity::kNote:
      return "note";
  }
  return "?";
}

std::vector<Finding> find(const Facts& facts) {
  return Search(facts).run();
}

}  // namespace onehop::tool
