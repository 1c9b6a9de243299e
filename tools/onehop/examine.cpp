// `onehop examine`: what other parts of this command ask in a process of its own, since the answer may cost
// that process its life: libraries are opened and patched, the driver is started. Not for users.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/onehop/commands.hpp"
#include "tools/onehop/driver.hpp"
#include "tools/onehop/nccl_library.hpp"

namespace onehop::tool {
namespace {

void print(const nlohmann::json& facts) {
  std::printf("%s\n", facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  _exit(0);  // without the destructors of what was patched
}

}  // namespace

void add_examine(CLI::App& app) {
  CLI::App* examine = app.add_subcommand("examine")->group("");
  examine->require_subcommand(1);
  CLI::App* nccl = examine->add_subcommand("nccl", "a libnccl file");
  auto path = std::make_shared<std::string>();
  nccl->add_option("path", *path)->required();
  nccl->callback([path] {
    const auto library = examine_here(*path);
    if (library)
      print({{"version", library->version.code}, {"refused", library->refused}});
    else
      print({{"error", library.reason()}});
  });
  CLI::App* gpus = examine->add_subcommand("gpus", "what the driver says");
  const auto* measure = gpus->add_flag("--measure");
  gpus->callback([measure] { print(driver_facts(measure->count() != 0)); });
}

}  // namespace onehop::tool
