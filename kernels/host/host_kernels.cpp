#include "kernels/host/host_kernels.hpp"

#include "kernels/host/host_memory.hpp"
#include "kernels/protocol/all_reduce.hpp"

namespace onehop {

void run_on_host(const CommView& comm, const Operation& operation) {
  with_method(operation.method, [&]<Method kMethod>() {
    with_words(operation.element, [&]<class Words>() {
      HostMemory memory;
      all_reduce<kMethod, Untyped<Words>, kMaxHopRanks>(memory, SingleThread{}, comm, operation);
    });
  });
}

}  // namespace onehop
