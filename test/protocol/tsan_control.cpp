// Controls for ThreadSanitizer, one per run: it must report the broken ones (exit code 66), and only those.
// What the operations compute is left aside here, so nothing but a report can fail a run.
#include <cstring>

#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"

namespace onehop::test {
namespace {

/// Does not order a block's reading of the turn before another block's advancing it.
class RelaxedArrive : public HostMemory {
 public:
  uint32_t arrive(uint32_t* counter) const {
    return std::atomic_ref<uint32_t>(*counter).fetch_add(1, std::memory_order_relaxed);
  }
};

struct RelaxedFabric : PlainFabric {
  using Memory = RelaxedArrive;
  Memory memory(uint32_t, uint32_t) { return {}; }
};

/// Lets a keeper advance the turn before the threads of its block have read it.
struct WithoutSync {
  struct Group : HostGroup {
    void sync() const {}
  };
  template <class Memory>
  static void run(Memory& memory, const HostGroup& group, const CommView& comm, const Operation& operation,
                  bool /*typed*/) {
    Proven::run(memory, Group{group}, comm, operation);
  }
};

template <class F, class Protocol>
void run() {
  F fabric;
  Script script;
  for (uint32_t k = 0; k < 100; ++k) {
    script.push_back(plain_step(Element::kFloat32, 16, 2, k, kAllMethods[k / 2 % kMethods]));
    for (Part& part : script.back().parts) part.shape = k % 2 ? Shape{4, 1, false} : Shape{1, 4, true};
  }
  RanksOptions options;
  options.islands = islands_of("AB");
  options.budget = std::chrono::milliseconds(500);
  Ranks<F, Protocol>(fabric, script, options).run();
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  const char* which = argc > 1 ? argv[1] : "";
  if (std::strcmp(which, "proven") == 0)
    run<PlainFabric, Proven>();
  else if (std::strcmp(which, "relaxed_arrive") == 0)
    run<RelaxedFabric, Proven>();
  else if (std::strcmp(which, "missing_sync") == 0)
    run<PlainFabric, WithoutSync>();
  else
    return 2;
}
