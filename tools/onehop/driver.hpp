// What the NVIDIA driver says of the GPUs, and what copies between them say. Both of its libraries are opened
// at run time, if they are there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plugin/result.hpp"

namespace onehop::tool {

/// 0 and empty: unknown.
struct GpuFacts {
  int index = 0;  ///< of NVML, or of CUDA where there is no NVML
  std::string name, uuid, pci;
  int capability = 0;  ///< 90 is 9.0; 0 also where CUDA does not see the GPU
  int link_generation = 0, link_generation_max = 0, link_width = 0, link_width_max = 0;
  uint64_t memory_bytes = 0, bar1_bytes = 0;
  bool mig = false;
};

struct PairFacts {
  int from = 0, to = 0;     ///< GpuFacts::index
  std::string read, write;  ///< what NVML says of peer access: "ok", or why not
  std::string access;       ///< what CUDA says: "yes", "no", or empty
  std::string measured;     ///< "right", "wrong data", or an error; empty: not measured
  bool direct = false;      ///< measured with peer access
  double copy_gb_s = 0, latency_us = 0;
};

struct DriverFacts {
  bool cuda_library = false, nvml_library = false;
  std::string driver;    ///< "580.95.05"
  int cuda_version = 0;  ///< 13000
  std::string trouble;   ///< why CUDA does not start
  std::vector<GpuFacts> gpus;
  std::vector<PairFacts> pairs;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, index, name, uuid, pci, capability, link_generation,
                                   link_generation_max, link_width, link_width_max, memory_bytes, bar1_bytes,
                                   mig)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PairFacts, from, to, read, write, access, measured, direct, copy_gb_s,
                                   latency_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DriverFacts, cuda_library, nvml_library, driver, cuda_version, trouble,
                                   gpus, pairs)

/// Asks in this process, which the driver may then hold up or end.
DriverFacts driver_facts(bool measure);

/// The same in a process of its own, by `onehop examine gpus`. `program`: the onehop command.
Result<DriverFacts> ask_driver(bool measure, const std::string& program);

/// "00000000:C1:00.0" of NVML as /sys writes it: "0000:c1:00.0".
std::string pci_address(std::string text);

}  // namespace onehop::tool
