// Graphs within graphs: child graphs, and the bodies of conditional nodes.
#include "test/gpu/life/rank.hpp"

namespace onehop::test {
namespace {

constexpr size_t kCount = 1000;

/// In place, so that each execution multiplies by the number of ranks.
struct Words {
  Words() { MUST(cudaMalloc(reinterpret_cast<void**>(&data), kCount * 4)); }
  Words(const Words&) = delete;
  ~Words() { (void)cudaFree(data); }
  void set(uint32_t value) const {
    const std::vector<uint32_t> values(kCount, value);
    MUST(cudaMemcpy(data, values.data(), kCount * 4, cudaMemcpyHostToDevice));
  }
  bool hold(uint32_t value) const {
    std::vector<uint32_t> values(kCount);
    MUST(cudaMemcpy(values.data(), data, kCount * 4, cudaMemcpyDeviceToHost));
    return values == std::vector<uint32_t>(kCount, value);
  }
  uint32_t* data = nullptr;
};

ncclResult_t call(const Words& words, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(words.data, words.data, kCount, ncclUint32, ncclSum, comm, stream);
}

uint32_t power(int ranks, int exponent) {
  uint32_t value = 1;
  for (int i = 0; i < exponent; ++i) value *= static_cast<uint32_t>(ranks);
  return value;
}

/// A graph whose only node is an `if` that is true, or a `while` that runs `loops` times, with one call in
/// the body. Where it fails, it says how.
struct Conditional {
  Conditional(const Words& words, ncclComm_t comm, cudaStream_t stream, int loops) {
    MUST(cudaMalloc(reinterpret_cast<void**>(&left), 4));
    MUST(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    MUST(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = handle;
    parameters.conditional.type = loops > 0 ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
    parameters.conditional.size = 1;
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
    MUST(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
#else
    MUST(cudaGraphAddNode(&node, graph, nullptr, 0, &parameters));
#endif
    cudaGraph_t body = parameters.conditional.phGraph_out[0];
    MUST(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    if (const ncclResult_t result = call(words, comm, stream); result != ncclSuccess)
      failure = std::string("ncclAllReduce: ") + ncclGetErrorString(result);
    if (failure.empty() && loops > 0) MUST(count_down(handle, left, stream));
    cudaGraph_t same = nullptr;
    note("cudaStreamEndCapture", cudaStreamEndCapture(stream, &same));
    if (failure.empty()) note("cudaGraphInstantiate", cudaGraphInstantiate(&executable, graph, 0));
    (void)cudaGetLastError();
  }
  Conditional(const Conditional&) = delete;
  ~Conditional() {
    if (executable != nullptr) (void)cudaGraphExecDestroy(executable);
    (void)cudaGraphDestroy(graph);
    (void)cudaFree(left);
    (void)cudaGetLastError();
  }
  void note(const char* what, cudaError_t error) {
    if (error != cudaSuccess && failure.empty())
      failure = std::string(what) + ": " + cudaGetErrorString(error);
  }
  std::string failure;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  uint32_t* left = nullptr;
};

}  // namespace

/// A captured graph as a child of another, beside eager calls.
CASE(child_graph) {
  const Words words;
  const Stream stream, other;
  const ncclComm_t comm = self.join();
  words.set(1);
  MUST(call(words, comm, stream));
  stream.synchronize();
  self.meet();
  cudaGraph_t inner = nullptr, outer = nullptr;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 2; ++i) MUST(call(words, comm, stream));
  MUST(cudaStreamEndCapture(stream, &inner));
  MUST(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t first = nullptr, second = nullptr;
  MUST(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
  MUST(cudaGraphAddChildGraphNode(&second, outer, &first, 1, inner));
  cudaGraphExec_t executable = nullptr;
  MUST(cudaGraphInstantiate(&executable, outer, 0));
  self.meet();
  for (int round = 0; round < 20; ++round) {
    words.set(1);
    MUST(cudaDeviceSynchronize());
    self.meet();
    for (int i = 0; i < 2; ++i) {
      MUST(cudaGraphLaunch(executable, stream));
      MUST(call(words, comm, other));  // behind the graph, by onehop's order alone
    }
    wait_idle(stream, 30);
    wait_idle(other, 30);
    must(words.hold(power(self.ranks, 10)), "wrong result of child graphs");
  }
  must(cudaGetLastError(), "an error is left");
  self.meet();
  MUST(cudaGraphExecDestroy(executable));
  MUST(cudaGraphDestroy(outer));
  MUST(cudaGraphDestroy(inner));
  MUST(ncclCommDestroy(comm));
}

/// Calls in the bodies of conditional nodes. Argument "must": it has to work; else either it works, or an
/// error says that it does not, and the communicator goes on.
CASE(conditional) {
  const Words words;
  const Stream stream;
  const ncclComm_t comm = self.join();
  words.set(1);
  MUST(call(words, comm, stream));
  stream.synchronize();
  self.meet();
  for (const int loops : {0, 3}) {
    const char* name = loops > 0 ? "while" : "if";
    self.step(name);
    {
      Conditional conditional(words, comm, stream, loops);
      if (self.rank == 0)
        self.note(std::string(name) + ": " + (conditional.failure.empty() ? "works" : conditional.failure));
      must(conditional.failure.empty() || self.argument != "must",
           std::string(name) + ": " + conditional.failure);
      self.meet();
      for (int replay = 0; replay < 5 && conditional.failure.empty(); ++replay) {
        words.set(1);
        const uint32_t left = static_cast<uint32_t>(loops);
        MUST(cudaMemcpy(conditional.left, &left, 4, cudaMemcpyHostToDevice));
        MUST(cudaDeviceSynchronize());
        self.meet();
        MUST(cudaGraphLaunch(conditional.executable, stream));
        wait_idle(stream, 30);
        must(words.hold(power(self.ranks, loops > 0 ? loops : 1)), "wrong result of a conditional body");
      }
      self.meet();
    }
    // The communicator goes on, eager and captured.
    words.set(1);
    MUST(cudaDeviceSynchronize());
    self.meet();
    MUST(call(words, comm, stream));
    wait_idle(stream, 30);
    must(words.hold(power(self.ranks, 1)), "wrong result after a conditional body");
    {
      const Graph graph(stream, [&] { MUST(call(words, comm, stream)); });
      self.meet();
      graph.launch(stream);
      wait_idle(stream, 30);
      must(words.hold(power(self.ranks, 2)), "wrong result of a graph after a conditional body");
      self.meet();
    }
    must(cudaGetLastError(), "an error is left");
    must(async_error(comm) == ncclSuccess, "an asynchronous error");
  }
  self.meet();
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::test
