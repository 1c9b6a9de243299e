// `onehop doctor`: what this machine is for onehop, what is wrong, and how to mend it.
#include <unistd.h>

#include <cstdio>

#include "tools/onehop/build_facts.hpp"
#include "tools/onehop/child.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/doctor_report.hpp"
#include "tools/onehop/find_plugin.hpp"

namespace onehop::tool {
namespace {

struct Options {
  bool json = false, measure = false;
  int pid = 0;
  std::string plugin, root;
};

Facts gather(const Options& options) {
  Facts facts;
  facts.pci = read_pci_tree(options.root);
  facts.driver = ask_driver(options.measure, own_path());
  facts.system = read_system(options.root);
  facts.environment = with_configuration_files(environment_of(environ), options.root);
  facts.plugin = find_plugin(options.plugin);
  facts.built_with_cuda = kBuiltWithCuda;
  facts.oldest_arch = static_cast<int>(std::strtol(kGpuArchs, nullptr, 10));
  std::vector<FoundNccl> found;
  if (options.pid != 0) {
    facts.process = read_process(options.pid, options.root + "/proc");
    for (const std::string& path : facts.process->nccl) found.push_back({path, "mapped by the process"});
  } else {
    found = find_every_nccl(facts.environment);
  }
  for (const FoundNccl& nccl : found) facts.libraries.push_back({nccl, examine(nccl.path, own_path())});
  return facts;
}

void doctor(const Options& options) {
  const Facts facts = gather(options);
  const std::vector<Finding> findings = find(facts);
  std::fputs((options.json ? report_json(facts, findings) : report_text(facts, findings)).c_str(), stdout);
  std::fflush(stdout);
  for (const Finding& finding : findings)
    if (finding.severity == Severity::kOff) throw Exit{kFound};
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "GPUs, their links, NCCL, and what keeps onehop off or slow");
  auto options = std::make_shared<Options>();
  doctor->add_flag("--json", options->json, "all facts and findings as JSON");
  doctor->add_flag("--measure", options->measure,
                   "copy between every pair of GPUs: whether the data arrives, and how fast");
  doctor->add_option("--pid", options->pid, "also look at this process; of NCCL, only at what it has loaded")
      ->check(CLI::PositiveNumber);
  doctor->add_option("--plugin", options->plugin,
                     "libnccl-net-onehop.so, instead of the one beside this command");
  doctor->add_option("--root", options->root, "folder in front of /sys, /proc, /dev and /etc")
      ->check(CLI::ExistingDirectory)
      ->group("Tests");
  doctor->footer("Exit codes: 0 nothing keeps onehop off; 1 something does; 2 usage.");
  doctor->callback([options] { tool::doctor(*options); });
}

}  // namespace onehop::tool
