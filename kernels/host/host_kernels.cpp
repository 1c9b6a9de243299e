#include "kernels/host/host_kernels.hpp"

#include "kernels/host/host_memory.hpp"
#include "kernels/protocol/dispatch.hpp"
#include "kernels/protocol/one_shot.hpp"

namespace onehop {

void run_on_host(const CommView& comm, const Operation& operation) {
  dispatch(operation.element, operation.reduction, [&]<class Type, class Operator>() {
    HostMemory memory;
    one_shot<Type, Operator, kMaxRanks>(memory, SingleThread{}, comm, operation);
  });
}

}  // namespace onehop
