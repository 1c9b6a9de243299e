#include "kernels/host/host_kernels.hpp"

#include "kernels/host/host_memory.hpp"
#include "kernels/protocol/one_shot.hpp"

namespace onehop {
namespace {

template <class Element>
void run(const CommView& comm, const Operation& operation) {
  HostMemory memory;
  one_shot<Element, kMaxRanks>(memory, SingleThread{}, comm, operation);
}

}  // namespace

void run_on_host(const CommView& comm, const Operation& operation) {
  switch (operation.element) {
    case Element::kFloat32:
      return run<Float32>(comm, operation);
    case Element::kFloat16:
      return run<Float16>(comm, operation);
    case Element::kBfloat16:
      return run<Bfloat16>(comm, operation);
    case Element::kFloat64:
      return run<Float64>(comm, operation);
    case Element::kInteger32:
      return run<Integer32>(comm, operation);
    case Element::kInteger64:
      return run<Integer64>(comm, operation);
  }
}

}  // namespace onehop
