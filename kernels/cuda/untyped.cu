// Everything that has no kernel of its own: one kernel for each kind of words, which looks at method, type
// and operator when it runs. (A kernel per method would have its own copy of all reductions.)
#include "kernels/cuda/kernel.cuh"

namespace onehop {
namespace {

template <class Words>
struct RunMethod {
  const CommView& comm;
  const Operation& operation;

  template <Method kMethod>
  __device__ void operator()() const {
    CudaMemory memory;
    all_reduce<kMethod, Untyped<Words>, kMaxHopRanks>(memory, CudaGroup{}, comm, operation);
  }
};

template <class Words>
__global__ void __launch_bounds__(kMaxWorkers + CudaGroup::kKeeperThreads)
    untyped_all_reduce_kernel(const __grid_constant__ Operation operation,
                              const __grid_constant__ CommView comm) {
  with_method(operation.method, RunMethod<Words>{comm, operation});
}

}  // namespace

Kernel untyped_kernel(Element element) {
  if (word_kind(element) == WordKind::kFlag) return kernel_of(untyped_all_reduce_kernel<FlagWords>);
  if (element == Element::kFloat8e4m3) return kernel_of(untyped_all_reduce_kernel<SentinelWordsOfE4m3>);
  return kernel_of(untyped_all_reduce_kernel<SentinelWords>);
}

}  // namespace onehop
