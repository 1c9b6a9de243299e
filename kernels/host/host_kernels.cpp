#include "kernels/host/host_kernels.hpp"

#include "kernels/host/host_memory.hpp"
#include "kernels/host/tampering.hpp"
#include "kernels/protocol/all_reduce.hpp"

namespace onehop {
namespace {

template <class Memory>
void run_in(Memory& memory, const CommView& comm, const Operation& operation) {
  with_method(operation.method, [&]<Method kMethod>() {
    with_words(operation.element, [&]<class Words>() {
      all_reduce<kMethod, Untyped<Words>, kMaxHopRanks>(memory, SingleThread{}, comm, operation);
    });
  });
}

}  // namespace

void run_on_host(const CommView& comm, const Operation& operation, const Tampering* tampering) {
  if (tampering == nullptr) {
    HostMemory memory;
    run_in(memory, comm, operation);
  } else {
    TamperedMemory memory(comm, *tampering);
    run_in(memory, comm, operation);
  }
}

}  // namespace onehop
