// Calls of one communicator, or of two, on several streams, from several threads, eager and in graphs, in an
// order that only onehop and NCCL keep: no event of the program's stands between them.
#include <memory>
#include <thread>

#include "test/gpu/life/rank.hpp"

namespace onehop::test {
namespace {

/// Sums of 3 ranks from one buffer into the other and back: every value becomes three times itself with each
/// call, modulo 2^32, so a call that is lost, doubled, early or late leaves another value.
class Powers {
 public:
  Powers(Rank& self, size_t count) : self_(self), count_(count) {
    must(self.ranks == 3, "sums of 3 ranks never become zero");
    for (uint32_t*& buffer : buffers_) MUST(cudaMalloc(reinterpret_cast<void**>(&buffer), count * 4));
    reset();
  }
  Powers(const Powers&) = delete;
  ~Powers() {
    for (uint32_t* buffer : buffers_) (void)cudaFree(buffer);
  }

  /// The next call. `made`: with an operator of the program's, so that it is NCCL's.
  void call(ncclComm_t comm, cudaStream_t stream, ncclRedOp_t op = ncclSum) {
    enqueue(comm, stream, op);
    expected_ *= 3;
  }
  /// The calls of a graph, an even number, count when it is launched.
  void capture(size_t calls, ncclComm_t comm, const std::function<cudaStream_t(size_t)>& stream,
               const std::function<ncclRedOp_t(size_t)>& op) {
    for (size_t i = 0; i < calls; ++i) enqueue(comm, stream(i), op(i));
  }
  void launched(size_t calls) {
    for (size_t i = 0; i < calls; ++i) expected_ *= 3;
  }

  /// The streams are idle.
  void check(const std::string& what) {
    std::vector<uint32_t> values(count_);
    MUST(cudaMemcpy(values.data(), buffers_[at_ % 2], count_ * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count_; ++i)
      if (values[i] != expected_ * start(i))
        fail(what + ": element " + std::to_string(i) + " after " + std::to_string(at_) + " calls is " +
             std::to_string(values[i]) + ", not " + std::to_string(expected_ * start(i)));
  }
  void reset() {
    std::vector<uint32_t> values(count_);
    for (size_t i = 0; i < count_; ++i) values[i] = start(i);
    MUST(cudaMemcpy(buffers_[at_ % 2], values.data(), count_ * 4, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    expected_ = 1;
  }

 private:
  static uint32_t start(size_t i) { return static_cast<uint32_t>(2 * i + 1); }
  void enqueue(ncclComm_t comm, cudaStream_t stream, ncclRedOp_t op) {
    all_reduce(buffers_[at_ % 2], buffers_[(at_ + 1) % 2], count_, ncclUint32, op, comm, stream);
    ++at_;
  }

  Rank& self_;
  size_t count_;
  uint32_t* buffers_[2] = {};
  size_t at_ = 0;
  uint32_t expected_ = 1;
};

/// Every input times one: a sum that is NCCL's.
ncclRedOp_t made_sum(ncclComm_t comm) {
  ncclRedOp_t op = ncclSum;
  uint32_t one = 1;
  MUST(ncclRedOpCreatePreMulSum(&op, &one, ncclUint32, ncclScalarHostImmediate, comm));
  return op;
}

struct Setting {
  explicit Setting(Rank& its_self)
      : self(its_self), powers(self, 1000), comm(self.join()), made(made_sum(comm)) {
    // Both ways once, while nothing waits: NCCL connects at its own first call.
    powers.call(comm, streams[0]);
    streams[0].synchronize();
    self.meet();
    powers.call(comm, streams[0], made);
    streams[0].synchronize();
    powers.check("the first calls");
    self.meet();
  }
  ~Setting() {
    self.meet();
    MUST(ncclCommDestroy(comm));
  }
  void synchronize() {
    for (const Stream& stream : streams) stream.synchronize();
  }
  Rank& self;
  Powers powers;
  Stream streams[3];
  ncclComm_t comm;
  ncclRedOp_t made;
};

int number(const Rank& self) {
  return std::stoi(self.argument);
}

}  // namespace

/// The argument: rounds. Each call on any of three streams, another one on each rank, one in eight passed.
CASE(two_streams) {
  Setting s(self);
  for (int round = 0; round < number(self); ++round) {
    self.step("round " + std::to_string(round));
    s.powers.reset();
    self.meet();
    // Some of the streams are busy, so that a call that does not wait for its turn comes early.
    MUST(wait_ns(self.own() % 200'000, s.streams[self.own() % 3]));
    for (int i = 0; i < 40; ++i)
      s.powers.call(s.comm, s.streams[self.own() % 3], self.common() % 8 == 0 ? s.made : ncclSum);
    s.synchronize();
    s.powers.check("calls on three streams");
  }
}

/// Each call from another thread than the one before, on a stream of that thread.
CASE(two_threads) {
  Setting s(self);
  for (int round = 0; round < number(self); ++round) {
    self.step("round " + std::to_string(round));
    s.powers.reset();
    self.meet();
    std::atomic<int> turn{0};
    const auto part = [&](int me) {
      MUST(cudaSetDevice(self.device));
      for (int i = me; i < 40; i += 2) {
        while (turn.load() != i) std::this_thread::yield();
        s.powers.call(s.comm, s.streams[me], i % 10 == 9 ? s.made : ncclSum);
        turn.store(i + 1);
      }
    };
    std::thread other(part, 1);
    part(0);
    other.join();
    s.synchronize();
    s.powers.check("calls from two threads");
  }
}

/// Replays beside eager calls of the same communicator on other streams; the graphs hold passed calls too,
/// and one of them goes over two streams. The argument: rounds.
CASE(beside) {
  Setting s(self);
  const auto on = [&](int stream) {
    return [&s, stream](size_t) -> cudaStream_t { return s.streams[stream]; };
  };
  const auto all_taken = [](size_t) { return ncclSum; };
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<size_t> calls;
  const auto add = [&](size_t count, const std::function<void()>& work) {
    self.meet();
    graphs.push_back(std::make_unique<Graph>(s.streams[0], work));
    calls.push_back(count);
  };
  for (const size_t count : {2, 4, 20})
    add(count, [&] { s.powers.capture(count, s.comm, on(0), all_taken); });
  add(6,
      [&] { s.powers.capture(6, s.comm, on(0), [&](size_t i) { return i % 3 == 2 ? s.made : ncclSum; }); });
  cudaEvent_t fork = nullptr, join = nullptr;
  for (cudaEvent_t* event : {&fork, &join}) MUST(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  // Branches: the calls on either follow each other, though the program puts no edge between them.
  add(8, [&] {
    MUST(cudaEventRecord(fork, s.streams[0]));
    MUST(cudaStreamWaitEvent(s.streams[1], fork, 0));
    s.powers.capture(
        8, s.comm, [&](size_t i) -> cudaStream_t { return s.streams[i % 2]; }, all_taken);
    MUST(cudaEventRecord(join, s.streams[1]));
    MUST(cudaStreamWaitEvent(s.streams[0], join, 0));
  });
  self.meet();
  for (int round = 0; round < number(self); ++round) {
    self.step("round " + std::to_string(round));
    s.powers.reset();
    self.meet();
    for (int i = 0; i < 12; ++i) {
      const uint32_t what = self.common() % 8;
      // A passed call of a graph is not ordered with eager ones on other streams (docs/limits.md).
      const cudaStream_t stream = s.streams[what == 3 ? 0 : self.own() % 3];
      if (what == 3) s.synchronize();
      if (what < graphs.size()) {
        graphs[what]->launch(stream);
        s.powers.launched(calls[what]);
      }
      if (what == 3) s.streams[0].synchronize();
      s.powers.call(s.comm, s.streams[self.own() % 3]);
      s.powers.call(s.comm, s.streams[self.own() % 3]);
    }
    s.synchronize();
    s.powers.check("graphs beside eager calls");
  }
  self.meet();
}

/// Two communicators on two streams, used in opposite order by the ranks of odd and of even number. There is
/// room on the GPU for all of these kernels at once, so nothing may wait for ever. (Argument: rounds.) Of
/// NCCL alone the same is asked in a run without onehop.
CASE(opposite) {
  const Stream streams[2];
  Checked a(self, 64 << 10), b(self, 64 << 10);
  Checked* checked[2] = {&a, &b};
  ncclComm_t comms[2] = {};
  for (int c = 0; c < 2; ++c) {
    comms[c] = self.join();
    checked[c]->all_reduce({.count = 1000, .seed = 1}, comms[c], self.ranks, streams[c]);
    streams[c].synchronize();
    self.meet();
  }
  for (uint32_t round = 0; round < static_cast<uint32_t>(number(self)); ++round) {
    self.step("round " + std::to_string(round));
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t count = 1 + self.common() % 4096;
      for (int k = 0; k < 2; ++k) {
        const int c = (k + self.rank) % 2;
        checked[c]->all_reduce({.count = count, .seed = 10 + round * 8 + i, .delay_ns = self.own() % 20'000},
                               comms[c], self.ranks, streams[c]);
      }
    }
    for (const Stream& stream : streams) wait_idle(stream, 30, "calls in opposite order");
  }
  a.verify("the first communicator");
  b.verify("the second communicator");
  self.meet();
  for (const ncclComm_t comm : comms) MUST(ncclCommDestroy(comm));
}

/// The thread's capture mode, its device and its errors are as before, whatever they were.
CASE(state_kept) {
  Checked checked(self, 64 << 10);
  const Stream stream;
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  const ncclComm_t comm = self.join();
  uint32_t seed = 1;
  // The first call too: it sets up.
  for (cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    for (const bool grouped : {false, true}) {
      const Call call{.count = 100, .seed = seed++};
      checked.before(call, self.ranks, stream);
      MUST(cudaSetDevice((self.device + 1) % devices));
      if (grouped) MUST(ncclGroupStart());
      checked.between(call, comm, stream);
      if (grouped) MUST(ncclGroupEnd());
      int current = -1;
      MUST(cudaGetDevice(&current));
      must(current == (self.device + 1) % devices, "the current device changed");
      must(cudaPeekAtLastError(), "an error is left");
      MUST(cudaSetDevice(self.device));
      checked.behind(call, self.ranks, stream);
      stream.synchronize();
    }
  }
  // An error of the program's own is none of onehop's business.
  void* nothing = nullptr;
  must(cudaMalloc(&nothing, size_t{1} << 60) != cudaSuccess, "a machine with an exabyte");
  const Call call{.count = 100, .seed = seed};
  void* data = nullptr;
  (void)cudaGetLastError();
  MUST(cudaMalloc(&data, 4096));
  MUST(cudaMemset(data, 0, 4096));
  MUST(cudaDeviceSynchronize());
  (void)cudaMalloc(&nothing, size_t{1} << 60);
  MUST(ncclAllReduce(data, data, call.count, call.type, call.op, comm, stream));
  const bool kept = cudaGetLastError() != cudaSuccess;
  self.figure("the program's own error kept", kept ? 1 : 0);
  stream.synchronize();
  checked.verify("calls in every capture mode");
  self.meet();
  MUST(cudaFree(data));
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::test
