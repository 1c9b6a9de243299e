// One process of a job: node_rank SCENARIO RANK RANKS FOLDER [ARGUMENT]
#include <cstdio>
#include <cstdlib>

#include "test/node/rank/rank.hpp"

namespace onehop::node {
namespace {

std::map<std::string, void (*)(Rank&)>& scenarios() {
  static std::map<std::string, void (*)(Rank&)> all;
  return all;
}

}  // namespace

Scenario::Scenario(const char* name, void (*run)(Rank&)) {
  scenarios().emplace(name, run);
}

}  // namespace onehop::node

int main(int argc, char** argv) {
  using namespace onehop::node;
  if (argc < 5) return 2;
  const auto scenario = scenarios().find(argv[1]);
  if (scenario == scenarios().end()) fail(std::string("no scenario ") + argv[1]);
  Rank self(std::atoi(argv[2]), std::atoi(argv[3]), argv[4], argc > 5 ? argv[5] : "");
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  MUST(cudaSetDevice(self.rank < devices ? self.rank : 0));
  scenario->second(self);
  self.print_expected();
  std::printf("done\n");
  return 0;
}
