#include <fmt/format.h>

#include <iterator>

#include "onehop/onehop.h"
#include "plugin/statistics_text.hpp"
#include "tools/onehop/doctor_report.hpp"
#include "tools/onehop/units.hpp"

namespace onehop::tool {
namespace {

using Text = fmt::memory_buffer;

template <class... Args>
void line(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  text.push_back('\n');
}

std::string or_unknown(const std::string& value) {
  return value.empty() ? "unknown" : value;
}

void driver(Text& text, const Facts& facts) {
  line(text, "Driver");
  if (!facts.driver) return line(text, "  no answer: {}\n", facts.driver.reason());
  const DriverFacts& d = *facts.driver;
  line(text, "  libcuda.so.1 {}, NVML {}, kernel module {}", d.cuda_library ? "found" : "not found",
       d.nvml_library ? "found" : "not found", or_unknown(facts.system.kernel_driver));
  if (!d.driver.empty() || d.cuda_version != 0)
    line(text, "  driver {}, for CUDA {}", or_unknown(d.driver),
         d.cuda_version == 0 ? "unknown"
                             : fmt::format("{}.{}", d.cuda_version / 1000, d.cuda_version % 1000 / 10));
  line(text, "");
}

std::string link(int value, int max, const char* before) {
  if (value == 0) return "?";
  return max == 0 || max == value ? fmt::format("{}{}", before, value)
                                  : fmt::format("{}{} of {}{}", before, value, before, max);
}

void gpus(Text& text, const Facts& facts) {
  line(text, "GPUs");
  if (!facts.driver || facts.driver->gpus.empty()) return line(text, "  none that the driver shows\n");
  for (const GpuFacts& g : facts.driver->gpus) {
    line(text, "  {}: {}, {}, compute capability {}, {}", g.index, or_unknown(g.name), or_unknown(g.pci),
         g.capability == 0 ? "unknown" : fmt::format("{}.{}", g.capability / 10, g.capability % 10),
         g.memory_bytes == 0 ? "memory unknown" : size_text(g.memory_bytes));
    line(text, "     PCIe {}, {} (a GPU at rest may lower its generation); BAR 1 {}{}",
         link(g.link_width, g.link_width_max, "x"), link(g.link_generation, g.link_generation_max, "Gen"),
         g.bar1_bytes == 0 ? "unknown" : size_text(g.bar1_bytes), g.mig ? "; MIG is on" : "");
  }
  line(text, "");
}

std::string cell(const PairFacts& p) {
  // What CUDA says is what a job meets; NVML adds what it knows of the reason.
  std::string said = p.access;
  if (said.empty())
    said = p.read == "ok" && p.write == "ok" ? "yes" : p.read.empty() || p.read == "unknown" ? "?" : "no";
  if (p.measured.empty()) return said;
  if (p.measured != "right") return said + " " + p.measured;
  return fmt::format("{} {:.0f}GB/s {:.1f}us", p.direct ? said : said + " via host", p.copy_gb_s,
                     p.latency_us);
}

void pairs(Text& text, const Facts& facts) {
  if (!facts.driver || facts.driver->pairs.empty()) return;
  const size_t count = facts.driver->gpus.size();
  bool measured = false;
  std::vector<std::string> cells(count * count, "-");
  size_t width = 3;
  for (const PairFacts& p : facts.driver->pairs) {
    if (static_cast<size_t>(p.from) >= count || static_cast<size_t>(p.to) >= count) continue;
    std::string& c = cells[static_cast<size_t>(p.from) * count + static_cast<size_t>(p.to)];
    c = cell(p);
    width = std::max(width, c.size());
    measured = measured || !p.measured.empty();
  }
  line(text, "Peer access from row to column, as the driver says{}",
       measured ? "; copies of 64 MiB and of 8 bytes, as measured" : " (--measure tries it)");
  std::string head = "    ";
  for (size_t to = 0; to < count; ++to) head += fmt::format("  {:<{}}", to, width);
  line(text, "{}", head.substr(0, head.find_last_not_of(' ') + 1));
  for (size_t from = 0; from < count; ++from) {
    std::string row = fmt::format("  {:<2}", from);
    for (size_t to = 0; to < count; ++to) row += fmt::format("  {:<{}}", cells[from * count + to], width);
    line(text, "{}", row.substr(0, row.find_last_not_of(' ') + 1));
  }
  line(text, "");
}

void tree(Text& text, const Facts& facts) {
  line(text, "PCI");
  if (!facts.pci.readable) return line(text, "  unknown: /sys/bus/pci is not to be seen here\n");
  std::map<std::string, std::string> names;
  if (facts.driver)
    for (const GpuFacts& g : facts.driver->gpus)
      names[g.pci] = fmt::format("GPU {}: {}", g.index, or_unknown(g.name));
  const std::string drawing = draw(facts.pci, names);
  if (drawing.empty()) return line(text, "  no NVIDIA GPU among {} devices\n", facts.pci.devices.size());
  for (size_t at = 0; at < drawing.size();) {
    const size_t end = drawing.find('\n', at);
    line(text, "  {}", drawing.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& gpu : facts.pci.gpus()) {
    const PciDevice& device = facts.pci.devices.at(gpu);
    line(text, "  {}: NUMA node {}, IOMMU {}", gpu,
         device.numa_node < 0 ? "unknown" : std::to_string(device.numa_node),
         device.iommu.empty() ? "off or unknown" : device.iommu);
  }
  line(text, "");
}

void system(Text& text, const Facts& facts) {
  const SystemFacts& s = facts.system;
  const auto size = [](std::optional<uint64_t> bytes) {
    return !bytes ? "unknown" : *bytes == UINT64_MAX ? "not limited" : size_text(*bytes);
  };
  line(text, "System");
  line(text, "  virtual machine: {}; container: {}; own user namespace: {}",
       !s.virtual_machine   ? "unknown"
       : *s.virtual_machine ? "yes"
                            : "no",
       s.container.empty() ? "none recognised" : s.container, s.own_user_namespace ? "yes" : "no");
  line(text, "  /dev/shm {}; locked memory {}; seccomp {}", size(s.shared_memory), size(s.locked_memory),
       !s.seccomp        ? "unknown"
       : *s.seccomp == 0 ? "none"
       : *s.seccomp == 2 ? "a filter"
                         : "strict");
  line(text, "");
}

void nccl(Text& text, const Facts& facts) {
  line(text, "NCCL");
  if (facts.libraries.empty()) line(text, "  no libnccl was found");
  for (const LibraryFacts& l : facts.libraries) {
    line(text, "  {} ({})", l.found.path, l.found.how);
    if (!l.library)
      line(text, "    {}", l.library.reason());
    else
      line(text, "    NCCL {}: {}", to_string(l.library->version),
           !l.library->refused.empty()    ? "cannot be taken over: " + l.library->refused
           : is_known(l.library->version) ? std::string("onehop can take it over")
                                          : std::string("not known to this onehop, which leaves it alone"));
  }
  line(text, "  onehop " ONEHOP_VERSION ": {}", facts.plugin ? *facts.plugin : facts.plugin.reason());
  line(text, "");
}

void process(Text& text, const Facts& facts) {
  if (!facts.process) return;
  const ProcessFacts& p = *facts.process;
  line(text, "Process {}", p.pid);
  if (!p.trouble.empty()) return line(text, "  {}\n", p.trouble);
  line(text, "  onehop: {}", p.plugin.empty() ? "not loaded" : p.plugin);
  for (const auto& [name, value] : p.environment) line(text, "  {}={}", name, value);
  if (p.statistics) {
    const Statistics sums = p.statistics->sums();
    line(text, "  {} calls taken, {} passed to NCCL", sums.taken(), sums.passed());
    for (const auto& comm : p.statistics->communicators) line(text, "  {}", communicator_text(comm));
  } else if (!p.plugin.empty()) {
    line(text, "  statistics: {}", p.statistics.reason());
  }
  line(text, "");
}

void findings(Text& text, const std::vector<Finding>& all) {
  line(text, "Findings");
  if (all.empty()) line(text, "  none");
  for (const Finding& f : all) {
    line(text, "  {} [{}] {}", f.severity == Severity::kOff ? "OFF " : name_of(f.severity), f.id, f.what);
    line(text, "       why it matters: {}", f.why);
    line(text, "       what to do: {}", f.mend);
  }
}

}  // namespace

std::string report_text(const Facts& facts, const std::vector<Finding>& all) {
  Text text;
  driver(text, facts);
  gpus(text, facts);
  pairs(text, facts);
  tree(text, facts);
  system(text, facts);
  nccl(text, facts);
  process(text, facts);
  findings(text, all);
  return fmt::to_string(text);
}

}  // namespace onehop::tool
