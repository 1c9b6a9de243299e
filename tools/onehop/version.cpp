// `onehop version`: of this command, and what its plugin was built for.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "onehop/onehop.h"
#include "plugin/nccl_releases.hpp"
#include "tools/onehop/build_facts.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/nccl_version.hpp"

namespace onehop::tool {

void add_version(CLI::App& app) {
  CLI::App* version = app.add_subcommand("version", "of onehop, and what it was built for");
  const CLI::Option* json = version->add_flag("--json")->description("as JSON");
  version->callback([json] {
    const std::string from = to_string(NcclVersion{kOldestNccl}),
                      to = to_string(NcclVersion{kNewestNccl / 100 * 100});
    if (json->count() != 0) {
      const nlohmann::ordered_json facts = {{"version", ONEHOP_VERSION},
                                            {"cuda", kBuiltWithCuda},
                                            {"gpu_archs", kGpuArchs},
                                            {"nccl_oldest", from},
                                            {"nccl_newest", to}};
      std::printf("%s\n", facts.dump().c_str());
      return;
    }
    std::printf("onehop " ONEHOP_VERSION "\n");
    std::printf("GPU kernels: %s\n", kBuiltWithCuda[0] == '\0'
                                         ? "none, it was built without CUDA"
                                         : (std::string("CUDA ") + kBuiltWithCuda +
                                            ", for compute capability " + kGpuArchs + " and newer")
                                               .c_str());
    std::printf("NCCL: %s to %s.x\n", from.substr(0, from.rfind('.')).c_str(),
                to.substr(0, to.rfind('.')).c_str());
  });
}

}  // namespace onehop::tool
