// The calls of one communicator on several streams, and in graphs. No user event orders anything here: onehop
// does.
#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

/// A communicator that is set up.
ncclComm_t ready(Rank& self, cudaStream_t stream) {
  const ncclComm_t comm = self.join();
  const Words data(1, 1);
  MUST(sum(data, data, comm, stream));
  MUST(cudaStreamSynchronize(stream));
  self.expect("taken");
  return comm;
}

}  // namespace

/// Each call needs the one before it, which is on the other stream and held up.
SCENARIO(two_streams) {
  const Stream a, b;
  const ncclComm_t comm = ready(self, b);
  Chain chain(self.ranks, 12);
  for (int round = 0; round < 3; ++round) {
    chain.reset();
    Gate gate;
    gate.close_on(a);
    for (size_t i = 0; i < chain.length(); ++i) chain.call(i, comm, i % 2 == 0 ? a : b);
    gate.open();
    a.synchronize();
    b.synchronize();
    chain.check();
    self.expect("taken", chain.length());
  }
  MUST(ncclCommDestroy(comm));
}

/// Calls of onehop and calls of NCCL in turn, each on the other stream than the one before, alone and in
/// groups.
SCENARIO(taken_and_passed) {
  const Stream a, b;
  const ncclComm_t comm = ready(self, a);
  const auto n = static_cast<uint32_t>(self.ranks);
  const ncclRedOp_t made = made_sum(comm);
  for (const bool grouped : {false, true}) {
    const Words from(100, 1), first(100, 0), second(100, 0), third(100, 0);
    const auto call = [&](const Words& in, const Words& out, ncclRedOp_t op, cudaStream_t stream) {
      if (grouped) MUST(ncclGroupStart());
      MUST(ncclAllReduce(in.data(), out.data(), in.size(), ncclUint32, op, comm, stream));
      if (grouped) MUST(ncclGroupEnd());
      self.expect(op == ncclSum ? "taken" : "operator");
    };
    Gate gate;
    gate.close_on(a);
    call(from, first, ncclSum, a);
    call(first, second, made, b);
    call(second, third, ncclSum, a);
    gate.open();
    a.synchronize();
    b.synchronize();
    must(first.holds(n) && second.holds(n * n), "a call of NCCL overtook one of onehop");
    must(third.holds(n * n * n), "a call of onehop overtook one of NCCL");
  }
  // The first call of a row is NCCL's, and held up.
  const Words from(100, 1), first(100, 0), second(100, 0);
  Gate gate;
  gate.close_on(a);
  MUST(ncclAllReduce(from.data(), first.data(), 100, ncclUint32, made, comm, a));
  MUST(sum(first, second, comm, b));
  self.expect("operator");
  self.expect("taken");
  gate.open();
  a.synchronize();
  b.synchronize();
  must(second.holds(n * n), "a call of onehop overtook one of NCCL");
  MUST(ncclCommDestroy(comm));
}

/// A stream that is destroyed right after its last call, and another that may get its handle.
SCENARIO(short_streams) {
  const Stream first;
  const ncclComm_t comm = ready(self, first);
  Chain chain(self.ranks, 6);
  for (size_t i = 0; i < chain.length(); ++i) {
    const auto stream = std::make_unique<Stream>();
    chain.call(i, comm, *stream);
  }
  MUST(cudaDeviceSynchronize());
  chain.check();
  self.expect("taken", chain.length());
  MUST(ncclCommDestroy(comm));
}

/// Graphs of 1, 2, 3 and 20 calls, replayed, with eager calls on another stream in between and around.
SCENARIO(graphs) {
  const Stream a, b;
  const ncclComm_t comm = ready(self, a);
  const ncclRedOp_t made = made_sum(comm);
  for (const size_t calls : {1, 2, 3, 20}) {
    // The graph is the middle of the chain; an eager call feeds it, and one takes its end.
    Chain chain(self.ranks, calls + 2);
    const Words ones(30000, 1), large(30000, 0), made_total(10, 0);
    const Graph graph(a, [&] {
      for (size_t i = 1; i <= calls; ++i) chain.call(i, comm, a);
      // A call that goes to NCCL, in the same graph.
      MUST(sum(ones, large, comm, a));
    });
    self.expect("taken", calls);
    self.expect("size");
    for (uint32_t replay = 1; replay <= 3; ++replay) {
      chain.reset(replay);
      large.fill(0);
      made_total.fill(0);
      Gate gate;
      gate.close_on(b);
      chain.call(0, comm, b);
      graph.launch(a);
      chain.call(calls + 1, comm, b);
      MUST(ncclAllReduce(ones.data(), made_total.data(), 10, ncclUint32, made, comm, a));
      gate.open();
      a.synchronize();
      b.synchronize();
      chain.check();
      must(large.holds(static_cast<uint32_t>(self.ranks)) &&
               made_total.holds(static_cast<uint32_t>(self.ranks)),
           "wrong result of a passed call");
      self.expect("taken", 2);
      self.expect("operator");
    }
    // Replays back to back, with no eager call and no host in between.
    chain.reset(5);
    chain.call(0, comm, a);
    for (int replay = 0; replay < 10; ++replay) graph.launch(a);
    chain.call(calls + 1, comm, a);
    a.synchronize();
    chain.check();
    self.expect("taken", 2);
  }
  MUST(ncclCommDestroy(comm));
}

/// A capture that goes over two streams, by the program's events: the calls follow each other whatever the
/// streams.
SCENARIO(forked_capture) {
  const Stream a, b;
  const ncclComm_t comm = ready(self, a);
  Chain chain(self.ranks, 6);
  cudaEvent_t fork = nullptr, join = nullptr;
  MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  const Graph graph(a, [&] {
    MUST(cudaEventRecord(fork, a));
    MUST(cudaStreamWaitEvent(b, fork, 0));
    for (size_t i = 0; i < chain.length(); ++i) chain.call(i, comm, i % 2 == 0 ? a : b);
    MUST(cudaEventRecord(join, b));
    MUST(cudaStreamWaitEvent(a, join, 0));
  });
  for (uint32_t replay = 1; replay <= 3; ++replay) {
    chain.reset(replay);
    graph.launch(b);
    b.synchronize();
    chain.check();
  }
  self.expect("taken", chain.length());
  MUST(cudaEventDestroy(fork));
  MUST(cudaEventDestroy(join));
  MUST(ncclCommDestroy(comm));
}

/// Two graphs of one communicator on two streams run one after the other, in the order of their launches.
SCENARIO(two_graphs) {
  const Stream a, b;
  const ncclComm_t comm = ready(self, a);
  Chain chain(self.ranks, 6);
  const Graph first(a, [&] {
    for (size_t i = 0; i < 3; ++i) chain.call(i, comm, a);
  });
  const Graph second(a, [&] {
    for (size_t i = 3; i < 6; ++i) chain.call(i, comm, a);
  });
  self.expect("taken", 6);
  for (uint32_t round = 1; round <= 3; ++round) {
    chain.reset(round);
    Gate gate;
    gate.close_on(a);
    first.launch(a);
    second.launch(b);
    gate.open();
    a.synchronize();
    b.synchronize();
    chain.check();
  }
  MUST(ncclCommDestroy(comm));
}

/// The first call of a communicator inside a capture, of the strictest mode: set-up must not spoil it.
SCENARIO(first_in_capture) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  Chain chain(self.ranks, 3);
  const Graph graph(
      stream,
      [&] {
        chain.call(0, comm, stream);
        MUST(ncclGroupStart());
        chain.call(1, comm, stream);
        MUST(ncclGroupEnd());
        chain.call(2, comm, stream);
      },
      cudaStreamCaptureModeGlobal);
  self.expect("taken", 3);
  for (uint32_t replay = 1; replay <= 3; ++replay) {
    chain.reset(replay);
    graph.launch(stream);
    stream.synchronize();
    chain.check();
  }
  // The thread's capture mode is as before: what the strictest mode forbids is forbidden.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  MUST(cudaThreadExchangeStreamCaptureMode(&mode));
  must(mode == cudaStreamCaptureModeGlobal, "set-up changed the thread's capture mode");
  MUST(ncclCommDestroy(comm));
}

/// onehopEnable: off and on again, at the same place on every rank.
SCENARIO(enable) {
  const Stream stream;
  ncclComm_t comm = self.join();
  const Loaded loaded;  // only now: NCCL loads it for the first communicator
  must(loaded.enable(comm, false) == -1, "onehopEnable on a communicator that is not set up");
  MUST(ncclCommDestroy(comm));
  comm = self.join("second");
  Chain chain(self.ranks, 9);
  for (size_t i = 0; i < chain.length(); ++i) {
    if (i % 3 == 1) must(loaded.enable(comm, false) == 0, "onehopEnable(0)");
    if (i > 0 && i % 3 == 0) must(loaded.enable(comm, true) == 0, "onehopEnable(1)");
    const Counted counted;
    chain.call(i, comm, stream);
    must(counted.taken() == (i % 3 == 0 ? 1u : 0u), "the switch was not followed");
    self.expect(i % 3 == 0 ? "taken" : "switched_off");
  }
  stream.synchronize();
  chain.check();
  MUST(ncclCommDestroy(comm));
}

/// A group with calls on two streams is as if posted on both: each of its calls comes after what both streams
/// held, and whoever waits for one of them has all of it.
SCENARIO(two_streams_in_a_group) {
  const ncclComm_t comm = self.join();
  const auto ranks = static_cast<uint32_t>(self.ranks);
  constexpr size_t kSlow = 64 << 20;
  {
    const Stream one, two;
    Words slow(kSlow / 4, 0), first(100, 1), second(100, 1);
    MUST(sum(first, first, comm, one));  // sets up
    one.synchronize();
    self.expect("taken");
    for (int round = 0; round < 5; ++round) {
      Words late(100, 0), result(100, 0), other(100, 0);
      // `late` becomes all ones on the second stream, after a while; the call on the first stream reads it.
      MUST(cudaMemsetAsync(slow.data(), round, kSlow, two));
      MUST(cudaMemsetAsync(late.data(), 0x01, 400, two));
      MUST(ncclGroupStart());
      MUST(sum(late, result, comm, one));
      MUST(sum(second, other, comm, two));
      MUST(ncclGroupEnd());
      one.synchronize();
      must(result.holds(ranks * 0x01010101u),
           "a call of the group came before what another of its streams held");
      must(other.holds(ranks), "a stream of the group was done before all of its calls were");
      two.synchronize();
      self.expect("taken", 2);
    }
  }
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::node
