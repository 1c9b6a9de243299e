// All global state of the plugin, in one place. Made when the plugin is loaded and never destroyed: calls may
// come in until the process is gone.
//
// Beside it there are only: the logger (log.cpp), the thread's group (group.cpp), the loader's callback
// (interpose/loader_watch.cpp) and the CUDA device (cuda/cuda_device.cpp), which has no state.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/images.hpp"
#include "plugin/plan_file/own_plan_file.hpp"
#include "plugin/registry.hpp"
#include "plugin/settings.hpp"
#include "plugin/setup/rendezvous.hpp"
#include "plugin/staging/memory.hpp"
#include "plugin/statistics_table.hpp"

namespace onehop {

struct Globals {
  Globals();

  const SettingsReport report;  ///< read once, in the constructor
  const Settings& settings = report.settings;
  uint64_t process =
      0;              ///< random identity of this process: two ranks with the same one share an address space
  Images images;      ///< changed by Images::scan()
  Registry registry;  ///< changed by set-up and destruction of communicators
  OwnPlanFile plan_file;            ///< read when the first communicator is set up
  LiveMemory live_memory;           ///< staging memory that this process owns
  Rendezvous rendezvous;            ///< of communicators that are being set up
  StatisticsTable statistics;       ///< counters of every communicator, and of calls that belong to none
  std::atomic<bool> forked{false};  ///< in a forked child: everything goes to NCCL
  std::atomic<uint64_t> staging_bytes{0};  ///< staging memory of this process, of all communicators
  std::atomic<uint32_t> failed_probes{0};  ///< kinds of staging that a probe found broken, a bit each
  std::atomic<uint64_t> communicators_on{0}, communicators_off{0};  ///< decided so far
};

Globals& globals();

uint64_t random_identity();

/// Staging memory of one process.
inline constexpr uint64_t kProcessStagingBudget = 256 << 20;

}  // namespace onehop
