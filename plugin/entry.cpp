// How the plugin begins. It exports no NCCL plugin symbol: NCCL opens it, finds nothing, closes it and uses
// its own network, which is the cleanest way to decline in every release. What there is to do is done when
// the object is loaded.
#include <pthread.h>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/report.hpp"

namespace {

using onehop::globals;

/// What was wrong with the settings is of interest only where there is an NCCL: with LD_PRELOAD every child
/// process of a job loads this.
void report_settings_once() {
  static bool reported = false;
  if (reported || globals().images.count() == 0) return;
  reported = true;
  for (const std::string& line : globals().report.errors) onehop::log::error("{}", line);
  for (const std::string& line : globals().report.warnings) onehop::log::warn("{}", line);
}

/// Inside the loader's lock, which makes these calls one after another.
void images_changed() {
  try {
    globals().images.scan();
    report_settings_once();
  } catch (const std::exception& e) {
    onehop::log::error("looking for libnccl failed: {}", e.what());
  }
}

/// No CUDA or NVML call and no thread here, nothing written to standard output, nothing changed in the
/// environment.
__attribute__((constructor)) void load() {
  try {
    onehop::log::open(globals().settings);
    // A fork inherits neither the GPU's mappings nor, of the threads, any but one.
    pthread_atfork(nullptr, nullptr, [] {
      globals().forked = true;
      globals().statistics.leave_to_parent();
    });
    if (const onehop::Status watched = onehop::interpose::watch_loader(&images_changed); !watched)
      onehop::log::warn("a libnccl that is loaded later will not be noticed: {}", watched.reason());
    images_changed();
  } catch (const std::exception& e) {
    onehop::log::error("onehop stays off: {}", e.what());
  }
}

__attribute__((destructor)) void unload() {
  try {
    onehop::report_at_exit();
  } catch (const std::exception&) {
    // The process is ending; there is nobody left to tell.
  }
}

}  // namespace
