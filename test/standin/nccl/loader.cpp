#include "test/standin/nccl/loader.hpp"

#include <dlfcn.h>
#include <pwd.h>
#include <strings.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "test/standin/nccl/log.hpp"

namespace onehop::standin {
namespace {

constexpr int kDefaultVersion = 22809;

struct PluginKind {
  const char* label;     ///< in log lines
  const char* variable;  ///< names the plugin
  const char* prefix;    ///< of a file that is named by its last part only
  const char* symbol;    ///< followed by the version
  int newest, oldest;
};
constexpr PluginKind kEnv{"ENV", "NCCL_ENV_PLUGIN", "libnccl-env", "ncclEnvPlugin_v", 1, 1};
constexpr PluginKind kNet{"NET", "NCCL_NET_PLUGIN", "libnccl-net", "ncclNetPlugin_v", 11, 6};
constexpr PluginKind kTuner{"TUNER", "NCCL_TUNER_PLUGIN", "libnccl-tuner", "ncclTunerPlugin_v", 5, 2};
constexpr PluginKind kProfiler{"PROFILER", "NCCL_PROFILER_PLUGIN", "libnccl-profiler", "ncclProfiler_v", 5,
                               1};

bool has_symbol(void* library, const PluginKind& kind) {
  for (int version = kind.newest; version >= kind.oldest; --version) {
    if (dlsym(library, (kind.symbol + std::to_string(version)).c_str()) != nullptr) return true;
  }
  return false;
}

void load_one(const PluginKind& kind, const std::string& name) {
  std::vector<std::string> candidates{name};
  const bool is_file_name = name.find('/') != std::string::npos ||
                            (name.rfind("lib", 0) == 0 && name.size() > 3 && name.ends_with(".so"));
  if (!is_file_name) candidates.push_back(std::string(kind.prefix) + "-" + name + ".so");
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (has_symbol(library, kind)) {
      // It stays open, as in NCCL, but there is no network here to ask it for.
      info("%s/Plugin: Loaded %s plugin %s", kind.label, kind.label, candidate.c_str());
      return;
    }
    info("External %s plugin %s is unsupported", kind.label, candidate.c_str());
    dlclose(library);
    return;
  }
  info("%s/Plugin: Could not find: %s", kind.label, name.c_str());
}

void load(const PluginKind& kind) {
  const char* setting = std::getenv(kind.variable);
  if (setting == nullptr || *setting == '\0') return load_one(kind, std::string(kind.prefix) + ".so");
  if (strcasecmp(setting, "none") == 0) return;
  info("%s set by environment to %s", kind.variable, setting);
  std::istringstream list(setting);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) load_one(kind, name);
  }
}

void read_configuration(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == std::string::npos || equals == 0) continue;
    setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 0);
  }
}

void read_configurations() {
  const char* file = std::getenv("NCCL_CONF_FILE");
  if (file != nullptr && *file != '\0') {
    read_configuration(file);
  } else if (const passwd* user = getpwuid(getuid())) {
    read_configuration(std::string(user->pw_dir) + "/.nccl.conf");
  }
  const char* system = std::getenv("ONEHOP_STANDIN_ETC");
  read_configuration(std::string(system != nullptr ? system : "/etc") + "/nccl.conf");
}

}  // namespace

void load_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    load(kEnv);
    read_configurations();
  });
}

void load_net_plugins() {
  static std::once_flag once;
  std::call_once(once, [] { load(kNet); });
}

void load_tuner_and_profiler() {
  static std::once_flag once;
  std::call_once(once, [] {
    load(kProfiler);
    load(kTuner);
  });
}

int nccl_version() {
  const char* setting = std::getenv("ONEHOP_STANDIN_NCCL_VERSION");
  const int version = setting != nullptr ? std::atoi(setting) : 0;
  return version > 0 ? version : kDefaultVersion;
}

}  // namespace onehop::standin
