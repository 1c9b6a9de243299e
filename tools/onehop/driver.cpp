#include "tools/onehop/driver.hpp"

#include <algorithm>
#include <cctype>

#include "tools/onehop/child.hpp"
#include "tools/onehop/cuda_driver.hpp"
#include "tools/onehop/measure_pairs.hpp"

namespace onehop::tool {
namespace {

using Handle = void*;  // of NVML

/// NVML's structures, as its interface has had them since version 11 of CUDA.
struct NvmlPci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
struct NvmlBar1 {
  unsigned long long total, free, used;
};
struct NvmlMemory {
  unsigned long long total, free, used;
};

std::string peer_status(int status) {
  constexpr const char* kTexts[] = {"ok",
                                    "the chipset is not supported",
                                    "the GPU is not supported",
                                    "no way between the root complexes",
                                    "switched off in the driver's settings",
                                    "not supported"};
  return status >= 0 && status < static_cast<int>(std::size(kTexts)) ? kTexts[status] : "unknown";
}

GpuFacts gpu_of_nvml(const Library& nvml, Handle handle, int index) {
  GpuFacts gpu;
  gpu.index = index;
  char text[96] = {};
  if (nvml.ok("nvmlDeviceGetName", handle, static_cast<char*>(text), 96u)) gpu.name = text;
  if (nvml.ok("nvmlDeviceGetUUID", handle, static_cast<char*>(text), 96u)) gpu.uuid = text;
  NvmlPci pci{};
  if (nvml.ok("nvmlDeviceGetPciInfo_v3", handle, &pci)) gpu.pci = pci_address(pci.address);
  const auto number = [&](const char* function) {
    unsigned value = 0;
    return nvml.ok(function, handle, &value) ? static_cast<int>(value) : 0;
  };
  gpu.link_generation = number("nvmlDeviceGetCurrPcieLinkGeneration");
  gpu.link_generation_max = number("nvmlDeviceGetMaxPcieLinkGeneration");
  gpu.link_width = number("nvmlDeviceGetCurrPcieLinkWidth");
  gpu.link_width_max = number("nvmlDeviceGetMaxPcieLinkWidth");
  NvmlBar1 bar1{};
  if (nvml.ok("nvmlDeviceGetBAR1MemoryInfo", handle, &bar1)) gpu.bar1_bytes = bar1.total;
  NvmlMemory memory{};
  if (nvml.ok("nvmlDeviceGetMemoryInfo", handle, &memory)) gpu.memory_bytes = memory.total;
  unsigned mig = 0, mig_pending = 0;
  gpu.mig = nvml.ok("nvmlDeviceGetMigMode", handle, &mig, &mig_pending) && mig != 0;
  return gpu;
}

void ask_nvml(DriverFacts& facts) {
  const Library nvml("libnvidia-ml.so.1");
  facts.nvml_library = static_cast<bool>(nvml);
  if (!nvml || !nvml.ok("nvmlInit_v2")) return;
  char version[96] = {};
  if (nvml.ok("nvmlSystemGetDriverVersion", static_cast<char*>(version), 96u)) facts.driver = version;
  unsigned count = 0;
  if (!nvml.ok("nvmlDeviceGetCount_v2", &count)) return;
  std::vector<Handle> handles;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (!nvml.ok("nvmlDeviceGetHandleByIndex_v2", i, &handle)) continue;
    facts.gpus.push_back(gpu_of_nvml(nvml, handle, static_cast<int>(handles.size())));
    handles.push_back(handle);
  }
  for (int from = 0; from < static_cast<int>(handles.size()); ++from) {
    for (int to = 0; to < static_cast<int>(handles.size()); ++to) {
      if (from == to) continue;
      PairFacts pair;
      pair.from = from;
      pair.to = to;
      int status = -1;
      const auto ask = [&](int what) {
        return nvml.ok("nvmlDeviceGetP2PStatus", handles[static_cast<size_t>(from)],
                       handles[static_cast<size_t>(to)], what, &status)
                   ? peer_status(status)
                   : std::string("unknown");
      };
      pair.read = ask(0);
      pair.write = ask(1);
      facts.pairs.push_back(pair);
    }
  }
}

/// The GPU at this address; a new one where NVML has said nothing.
GpuFacts& gpu_at(DriverFacts& facts, const std::string& pci) {
  const auto known =
      std::find_if(facts.gpus.begin(), facts.gpus.end(), [&](const GpuFacts& g) { return g.pci == pci; });
  if (known != facts.gpus.end()) return *known;
  GpuFacts gpu;
  gpu.index = static_cast<int>(facts.gpus.size());
  gpu.pci = pci;
  for (const GpuFacts& other : facts.gpus)
    for (const auto& [from, to] : {std::pair(gpu.index, other.index), std::pair(other.index, gpu.index)}) {
      facts.pairs.emplace_back();
      facts.pairs.back().from = from;
      facts.pairs.back().to = to;
    }
  return facts.gpus.emplace_back(gpu);
}

void ask_cuda(DriverFacts& facts, bool measure) {
  const CudaDriver cuda;
  facts.cuda_library = static_cast<bool>(cuda);
  if (!cuda) return;
  facts.trouble = cuda.start();
  (void)cuda.library().ok("cuDriverGetVersion", &facts.cuda_version);
  int count = 0;
  if (!facts.trouble.empty() || !cuda.library().ok("cuDeviceGetCount", &count)) return;
  std::vector<int> ordinals(facts.gpus.size(), -1);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0, major = 0, minor = 0;
    char text[96] = {};
    if (!cuda.library().ok("cuDeviceGet", &device, ordinal) ||
        !cuda.library().ok("cuDeviceGetPCIBusId", static_cast<char*>(text), 96, device))
      continue;
    GpuFacts& gpu = gpu_at(facts, pci_address(text));
    ordinals.resize(std::max(ordinals.size(), facts.gpus.size()), -1);
    ordinals[static_cast<size_t>(gpu.index)] = ordinal;
    constexpr int kMajor = 75, kMinor = 76;
    if (cuda.library().ok("cuDeviceGetAttribute", &major, kMajor, device) &&
        cuda.library().ok("cuDeviceGetAttribute", &minor, kMinor, device))
      gpu.capability = major * 10 + minor;
    if (gpu.name.empty() && cuda.library().ok("cuDeviceGetName", static_cast<char*>(text), 96, device))
      gpu.name = text;
    size_t memory = 0;
    if (gpu.memory_bytes == 0 && cuda.library().ok("cuDeviceTotalMem_v2", &memory, device))
      gpu.memory_bytes = memory;
  }
  for (PairFacts& pair : facts.pairs) {
    const int from = ordinals[static_cast<size_t>(pair.from)], to = ordinals[static_cast<size_t>(pair.to)];
    int can = 0;
    if (from >= 0 && to >= 0 && cuda.library().ok("cuDeviceCanAccessPeer", &can, from, to))
      pair.access = can != 0 ? "yes" : "no";
  }
  if (measure) measure_pairs(cuda, ordinals, facts.pairs);
}

}  // namespace

std::string pci_address(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t colon = text.find(':');
  // NVML writes eight digits of the domain.
  if (colon == 8 && text.rfind("0000", 0) == 0) text.erase(0, 4);
  return text;
}

DriverFacts driver_facts(bool measure) {
  DriverFacts facts;
  ask_nvml(facts);
  ask_cuda(facts, measure);
  return facts;
}

Result<DriverFacts> ask_driver(bool measure, const std::string& program) {
  std::vector<std::string> command = {program, "examine", "gpus"};
  if (measure) command.emplace_back("--measure");
  Environment environment = environment_of(environ);
  environment.erase("LD_PRELOAD");
  const auto text = output_of(command, environment, std::chrono::seconds(measure ? 180 : 60));
  if (!text) return text.error();
  const auto facts = nlohmann::json::parse(*text, nullptr, false);
  if (!facts.is_object()) return Error{"the answer was not understood"};
  return facts.get<DriverFacts>();
}

}  // namespace onehop::tool
