#include "tools/onehop/nccl_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "plugin/interpose/interpose.hpp"
#include "plugin/nccl_functions.hpp"
#include "tools/onehop/child.hpp"

namespace onehop::tool {
namespace {

/// Stands in the place of every function; nobody calls it.
int no_function() {
  return 0;
}

std::string try_to_take_over(const interpose::Image& mapped) {
  for (const char* name : kRequiredFunctions)
    if (mapped.find(name).address == nullptr) return std::string("it has no ") + name;
  static void* originals[std::size(kHookedFunctions)];
  std::vector<interpose::Hook> hooks;
  for (size_t i = 0; i < std::size(kHookedFunctions); ++i)
    hooks.push_back({kHookedFunctions[i], reinterpret_cast<void*>(&no_function), &originals[i]});
  auto patch = interpose::Patch::prepare(mapped, hooks);
  if (!patch) return patch.reason();
  const Status installed = patch->install();
  return installed ? "" : installed.reason();
}

}  // namespace

Result<NcclLibrary> examine_here(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{std::string("it cannot be opened: ") + dlerror()};
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(handle, "ncclGetVersion"));
  NcclLibrary library{path, {}, ""};
  if (get_version == nullptr || get_version(&library.version.code) != 0)
    return Error{"it does not say its version"};
  const auto images = interpose::images_defining("ncclAllReduce");
  library.refused = images.empty() ? "it has no ncclAllReduce" : try_to_take_over(images.front());
  return library;
}

Result<NcclLibrary> examine(const std::string& path, const std::string& program) {
  // Not what was meant for the job: no other library, no second onehop, no chatter.
  Environment environment = environment_of(environ);
  std::erase_if(environment, [](const auto& variable) {
    return variable.first == "LD_PRELOAD" || variable.first.rfind("NCCL_", 0) == 0;
  });
  const auto text = output_of({program, "examine", "nccl", path}, environment, std::chrono::seconds(30));
  if (!text) return text.error();
  const auto facts = nlohmann::json::parse(*text, nullptr, false);
  if (!facts.is_object()) return Error{"it could not be examined"};
  if (const std::string error = facts.value("error", ""); !error.empty()) return Error{error};
  return NcclLibrary{path, {facts.value("version", 0)}, facts.value("refused", "")};
}

}  // namespace onehop::tool
