// What outlives what: graphs and communicators, and processes that leave in the middle.
#include <csignal>
#include <cstdlib>

#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {

/// A graph that holds calls of a communicator and one that holds none of them. Argument: which of the two
/// ends first, "graph" or "communicator". What is left of the other then is of no use, and does no harm.
SCENARIO(graph_or_communicator_first) {
  const Stream stream;
  for (int round = 0; round < 4; ++round) {
    ncclComm_t comm = self.join("world" + std::to_string(round));
    Chain chain(self.ranks, 4);
    auto graph = std::make_unique<Graph>(stream, [&] {
      for (size_t i = 0; i < chain.length(); ++i) chain.call(i, comm, stream);
    });
    self.expect("taken", chain.length());
    Gate gate;  // nothing runs before the end that comes first is under way
    gate.close_on(stream);
    graph->launch(stream);
    std::thread opener([&gate] { gate.open(); });
    if (self.argument == "graph") {
      graph.reset();  // while it may run, as CUDA allows
      stream.synchronize();
      chain.check();
      MUST(ncclCommDestroy(comm));
    } else {
      MUST(ncclCommDestroy(comm));  // waits for what was launched
      must(cudaStreamQuery(stream) == cudaSuccess, "ncclCommDestroy did not wait for a graph");
      chain.check();
      graph.reset();
    }
    opener.join();
  }
}

/// The first call of a communicator in a capture. Argument: the mode, "global", "thread" or "relaxed".
SCENARIO(first_in_capture_of_mode) {
  const cudaStreamCaptureMode wanted = self.argument == "global"   ? cudaStreamCaptureModeGlobal
                                       : self.argument == "thread" ? cudaStreamCaptureModeThreadLocal
                                                                   : cudaStreamCaptureModeRelaxed;
  const ncclComm_t comm = self.join();
  const Stream stream;
  Chain chain(self.ranks, 2);
  {
    const Graph graph(
        stream,
        [&] {
          chain.call(0, comm, stream);
          chain.call(1, comm, stream);
        },
        wanted);
    for (uint32_t replay = 1; replay <= 3; ++replay) {
      chain.reset(replay);
      graph.launch(stream);
      stream.synchronize();
      chain.check();
    }
  }
  self.expect("taken", 2);
  MUST(ncclCommDestroy(comm));
}

/// A handler of SIGTERM calls exit(), with a communicator that lives and a call that waits for rank 0.
SCENARIO(exit_in_a_handler) {
  const ncclComm_t comm = self.join();
  auto* stream = new Stream;
  const auto* data = new Words(64, 1);
  MUST(sum(*data, *data, comm, *stream));
  stream->synchronize();
  if (self.rank != 0) MUST(sum(*data, *data, comm, *stream));
  self.meet("leaving");
  std::signal(SIGTERM, [](int) { std::exit(42); });
  (void)raise(SIGTERM);
}

/// Two communicators, used in opposite order on the ranks, each on a stream of its own: after set-up no
/// rank's host waits, so both get along.
SCENARIO(opposite_order) {
  const ncclComm_t first = self.join("first"), second = self.join("second");
  const Stream one, two;
  const Words a(64, 1), b(64, 1);
  for (const ncclComm_t comm : {first, second})
    MUST(sum(a, a, comm, one));  // in the same order: set-up waits
  one.synchronize();
  self.expect("taken", 2);
  for (int round = 0; round < 20; ++round) {
    a.fill(1);
    b.fill(1);
    if (self.rank % 2 == 0) MUST(sum(a, a, first, one));
    MUST(sum(b, b, second, two));
    if (self.rank % 2 == 1) MUST(sum(a, a, first, one));
    one.synchronize();
    two.synchronize();
    must(a.holds(static_cast<uint32_t>(self.ranks)) && b.holds(static_cast<uint32_t>(self.ranks)),
         "wrong sum");
    self.expect("taken", 2);
  }
  MUST(ncclCommDestroy(second));
  MUST(ncclCommDestroy(first));
}

}  // namespace onehop::node
