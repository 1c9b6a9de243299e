#include <nlohmann/json.hpp>

#include "onehop/onehop.h"
#include "plugin/statistics_text.hpp"
#include "tools/onehop/doctor_report.hpp"

namespace onehop::tool {
namespace {

using Json = nlohmann::ordered_json;

/// What is unknown is null.
Json known(int value, int unknown = 0) {
  return value == unknown ? Json() : Json(value);
}
Json known(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}
template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json driver_json(const Facts& facts) {
  if (!facts.driver) return {{"error", facts.driver.reason()}};
  const DriverFacts& d = *facts.driver;
  return {{"libcuda", d.cuda_library},
          {"nvml", d.nvml_library},
          {"version", known(d.driver)},
          {"kernel_module", known(facts.system.kernel_driver)},
          {"cuda_version", known(d.cuda_version)},
          {"error", known(d.trouble)}};
}

Json gpus_json(const Facts& facts) {
  Json list = Json::array();
  if (!facts.driver) return list;
  for (const GpuFacts& g : facts.driver->gpus) {
    list.push_back({{"index", g.index},
                    {"name", known(g.name)},
                    {"uuid", known(g.uuid)},
                    {"pci", known(g.pci)},
                    {"compute_capability", known(g.capability)},
                    {"link_generation", known(g.link_generation)},
                    {"link_generation_max", known(g.link_generation_max)},
                    {"link_width", known(g.link_width)},
                    {"link_width_max", known(g.link_width_max)},
                    {"memory_bytes", g.memory_bytes},
                    {"bar1_bytes", g.bar1_bytes == 0 ? Json() : Json(g.bar1_bytes)},
                    {"mig", g.mig}});
  }
  return list;
}

Json pairs_json(const Facts& facts) {
  Json list = Json::array();
  if (!facts.driver) return list;
  for (const PairFacts& p : facts.driver->pairs) {
    Json pair = {{"from", p.from},
                 {"to", p.to},
                 {"read", known(p.read)},
                 {"write", known(p.write)},
                 {"access", known(p.access)},
                 {"measured", known(p.measured)}};
    if (p.measured == "right") {
      pair["direct"] = p.direct;
      pair["copy_gb_s"] = p.copy_gb_s;
      pair["latency_us"] = p.latency_us;
    }
    list.push_back(pair);
  }
  return list;
}

const char* name_of(Redirect redirect) {
  switch (redirect) {
    case Redirect::kUnknown:
      break;
    case Redirect::kOff:
      return "off";
    case Redirect::kOn:
      return "on";
  }
  return "unknown";
}

/// The devices on the way to GPUs.
Json pci_json(const Facts& facts) {
  if (!facts.pci.readable) return nullptr;
  Json list = Json::object();
  for (const std::string& gpu : facts.pci.gpus()) {
    for (const std::string& address : facts.pci.way_up(gpu)) {
      const auto found = facts.pci.devices.find(address);
      if (found == facts.pci.devices.end()) continue;
      const PciDevice& device = found->second;
      list[address] = {{"parent", device.parent},
                       {"numa_node", known(device.numa_node, -1)},
                       {"link_generation", known(device.link_generation)},
                       {"link_generation_max", known(device.link_generation_max)},
                       {"link_width", known(device.link_width)},
                       {"link_width_max", known(device.link_width_max)},
                       {"iommu", known(device.iommu)}};
      if (device.is_bridge()) list[address]["acs_redirect"] = name_of(device.redirect);
      if (device.bar1_bytes) list[address]["bar1_bytes"] = *device.bar1_bytes;
    }
  }
  return list;
}

Json system_json(const Facts& facts) {
  const SystemFacts& s = facts.system;
  return {{"virtual_machine", known(s.virtual_machine)},
          {"container", known(s.container)},
          {"own_user_namespace", s.own_user_namespace},
          {"shm_bytes", known(s.shared_memory)},
          {"locked_memory_bytes",
           s.locked_memory && *s.locked_memory == UINT64_MAX ? Json("unlimited") : known(s.locked_memory)},
          {"seccomp", known(s.seccomp)},
          {"shared_pages", s.no_shared_pages.empty() ? Json("yes") : Json(s.no_shared_pages)}};
}

Json nccl_json(const Facts& facts) {
  Json list = Json::array();
  for (const LibraryFacts& l : facts.libraries) {
    Json library = {{"path", l.found.path}, {"found_by", l.found.how}};
    if (l.library) {
      library["version"] = to_string(l.library->version);
      library["known"] = is_known(l.library->version);
      library["refused"] = known(l.library->refused);
    } else {
      library["error"] = l.library.reason();
    }
    list.push_back(library);
  }
  return list;
}

Json process_json(const ProcessFacts& p) {
  Json process = {{"pid", p.pid},
                  {"error", known(p.trouble)},
                  {"plugin", known(p.plugin)},
                  {"nccl", p.nccl},
                  {"environment", p.environment}};
  if (p.statistics)
    process["statistics"] = Json::parse(statistics_json(*p.statistics), nullptr, false);
  else
    process["statistics"] = nullptr;
  return process;
}

}  // namespace

std::string report_json(const Facts& facts, const std::vector<Finding>& findings) {
  Json document = {{"version", ONEHOP_VERSION},    {"plugin", facts.plugin ? Json(*facts.plugin) : Json()},
                   {"driver", driver_json(facts)}, {"gpus", gpus_json(facts)},
                   {"pairs", pairs_json(facts)},   {"pci", pci_json(facts)},
                   {"system", system_json(facts)}, {"nccl", nccl_json(facts)}};
  if (facts.process) document["process"] = process_json(*facts.process);
  document["findings"] = Json::array();
  for (const Finding& f : findings)
    document["findings"].push_back({{"severity", tool::name_of(f.severity)},
                                    {"id", f.id},
                                    {"what", f.what},
                                    {"why", f.why},
                                    {"mend", f.mend}});
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace onehop::tool
