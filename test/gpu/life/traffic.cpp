// Many calls back to back, eager and in graphs, with every result checked.
#include <chrono>
#include <memory>
#include <thread>

#include "test/gpu/life/rank.hpp"

namespace onehop::test {
namespace {

#ifdef ONEHOP_ON_STANDIN  // which is slow
constexpr uint32_t kBetween = 5, kLongGraph = 20;
constexpr std::chrono::milliseconds kLate(300);
#else
constexpr uint32_t kBetween = 50, kLongGraph = 100;
constexpr std::chrono::seconds kLate(5);
#endif

constexpr ncclDataType_t kTypes[] = {ncclFloat32, ncclBfloat16, ncclFloat16,
                                     ncclInt8,    ncclFloat64,  ncclInt32};
constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclMax, ncclMin, ncclProd};

/// Equal on all ranks but for offset, in_place and delay.
Call random_call(Rank& self, size_t most_bytes, uint32_t seed) {
  Call call;
  call.type = kTypes[self.common() % std::size(kTypes)];
  call.op = kOperators[self.common() % std::size(kOperators)];
  const size_t most = most_bytes / size_of(static_cast<uint32_t>(call.type));
  // Half of them small.
  call.count = 1 + self.common() % (self.common() % 2 == 0 ? std::min<size_t>(most, 600) : most);
  call.seed = seed;
  call.in_place = self.own() % 4 == 0;
  call.offset = self.own() % 4;
  if (self.own() % 4 == 0) call.delay_ns = self.own() % 20'000;
  return call;
}

/// As with NCCL alone, a call that is its communicator's first on one of its ways must not be made while
/// kernels wait: NCCL may then allocate.
void connect(Rank& self, Checked& checked, ncclComm_t comm, cudaStream_t stream, size_t passed_count) {
  const auto step = [&](const auto& call) {
    call();
    MUST(cudaStreamSynchronize(stream));
    self.meet();
  };
  step([&] { checked.all_reduce({.count = 100, .seed = 1}, comm, self.ranks, stream); });
  if (passed_count == 0) return;
  for (const size_t count : {passed_count, 2 * passed_count - 1})
    step([&] { checked.all_reduce({.count = count, .seed = 2}, comm, self.ranks, stream); });
  for (const size_t count : {size_t{100}, passed_count / 4}) {
    step([&] { checked.all_gather({.count = count, .seed = 3}, comm, self.ranks, stream); });
    step([&] { checked.broadcast({.count = count, .seed = 4}, 0, comm, self.ranks, stream); });
    step([&] { checked.reduce_scatter({.count = count, .seed = 5}, comm, self.ranks, stream); });
  }
}

}  // namespace

/// "CALLS": one after another, the input overwritten right behind each, random delays on each rank; the host
/// waits only so often that the queue of launches does not fill.
CASE(overwritten) {
  const auto calls = static_cast<uint32_t>(std::stoul(self.argument));
  Checked checked(self, 64 << 10);
  const Stream stream;
  const ncclComm_t comm = self.join();
  connect(self, checked, comm, stream, 0);
  for (uint32_t i = 0; i < calls; ++i) {
    if (i % 100 == 0) {
      self.step("call " + std::to_string(i));
      stream.synchronize();
    }
    checked.all_reduce(random_call(self, 32 << 10, 10 + i), comm, self.ranks, stream);
  }
  stream.synchronize();
  self.figure("elements checked", static_cast<double>(checked.verify("calls back to back")));
  if (self.rank == 0) self.figure("calls of each rank", calls);
  const LoadedOnehop onehop;
  if (onehop.found()) must(onehop.status(comm).taken == calls + 1, "not every call was taken");
  self.meet();
  MUST(ncclCommDestroy(comm));
}

/// "REPLAYS,SECONDS" with ONEHOP_MAX_BYTES=64K: graphs of 1, 7 and 100 calls of sizes on both sides of the
/// limit, the data new in each replay, eager calls and NCCL's other collectives in between, once one rank 5 s
/// late.
CASE(replayed) {
  const auto most = static_cast<uint32_t>(std::stoul(self.argument));
  const double seconds = std::stod(self.argument.substr(self.argument.find(',') + 1)) / 3;
  constexpr size_t kLimit = 16384;  // floats in 64 KiB
  Checked checked(self, 256 << 10);
  const Stream stream;
  uint32_t* round = nullptr;
  MUST(cudaMalloc(reinterpret_cast<void**>(&round), sizeof(*round)));
  MUST(cudaMemset(round, 0, sizeof(*round)));
  const ncclComm_t comm = self.join();
  connect(self, checked, comm, stream, kLimit + 1);
  uint32_t seed = 100;
  for (const uint32_t calls : {1u, 7u, kLongGraph}) {
    self.meet();
    auto graph = std::make_unique<Graph>(stream, [&] {
      for (uint32_t i = 0; i < calls; ++i) {
        const size_t counts[] = {kLimit, 1 + self.common() % 2000, kLimit + 1, kLimit - 1};
        // Of a hundred calls most are small, as in a decoder.
        Call call{.count = counts[i % 10 < 3 ? i % 4 : 1], .seed = seed++};
        call.in_place = self.own() % 4 == 0;
        checked.all_reduce(call, comm, self.ranks, stream, round);
      }
      MUST(advance(round, stream));
    });
    self.meet();
    const double begin = now_s();
    uint32_t replay = 0;
    self.shared.stop = 0;
    self.meet();
    while (replay < most && self.shared.stop == 0) {
      for (uint32_t i = 0; i < kBetween; ++i, ++replay) {
        graph->launch(stream);
        if (i % 10 == 9) stream.synchronize();
      }
      self.step("graph of " + std::to_string(calls) + ", replay " + std::to_string(replay));
      if (calls == 7 && replay == 4 * kBetween && self.rank == self.ranks - 1)
        std::this_thread::sleep_for(kLate);
      for (int i = 0; i < 3; ++i)
        checked.all_reduce({.count = 1 + self.common() % (2 * kLimit), .seed = seed++}, comm, self.ranks,
                           stream);
      checked.all_gather({.count = 1 + self.common() % 2000, .seed = seed++}, comm, self.ranks, stream);
      checked.broadcast({.count = 1 + self.common() % 4000, .seed = seed++},
                        static_cast<int>(self.common() % static_cast<uint32_t>(self.ranks)), comm, self.ranks,
                        stream);
      checked.reduce_scatter({.count = 1 + self.common() % 2000, .seed = seed++}, comm, self.ranks, stream);
      stream.synchronize();
      self.meet();
      if (self.rank == 0 && now_s() - begin > seconds) self.shared.stop = 1;
      self.meet();
    }
    checked.verify("graphs of " + std::to_string(calls));
    if (self.rank == 0) self.figure(("replays of " + std::to_string(calls) + " calls").c_str(), replay);
    self.meet();
    graph.reset();
  }
  self.figure("elements checked", static_cast<double>(checked.verify("graphs")));
  const LoadedOnehop onehop;
  if (onehop.found()) {
    const onehopCommStatus status = onehop.status(comm);
    must(status.taken > 0 && status.passed > 0, "calls were not on both sides of the limit");
    must(status.state == onehopOn, std::string("not on any more: ") + status.reason);
  }
  self.meet();
  MUST(cudaFree(round));
  MUST(ncclCommDestroy(comm));
}

/// The first call of a communicator stands in a capture; the argument: its mode, "global", "thread-local" or
/// "relaxed". (A global capture forbids what the set-up of another thread of the process does.)
CASE(first_in_capture) {
  const cudaStreamCaptureMode mode = self.argument == "global"         ? cudaStreamCaptureModeGlobal
                                     : self.argument == "thread-local" ? cudaStreamCaptureModeThreadLocal
                                                                       : cudaStreamCaptureModeRelaxed;
  Checked checked(self, 64 << 10);
  const Stream stream;
  for (uint32_t grouped = 0; grouped < 2; ++grouped) {
    const ncclComm_t comm = self.join();
    self.meet();
    {
      const Graph graph(
          stream,
          [&] {
            const Call call{.count = 3000, .seed = 1 + grouped};
            checked.before(call, self.ranks, stream);
            if (grouped != 0) MUST(ncclGroupStart());
            checked.between(call, comm, stream);
            if (grouped != 0) MUST(ncclGroupEnd());
            checked.behind(call, self.ranks, stream);
            for (uint32_t i = 0; i < 2; ++i)
              checked.all_reduce({.count = 500 + i, .seed = 10 + i}, comm, self.ranks, stream);
          },
          mode);
      self.meet();
      for (uint32_t replay = 0; replay < 50; ++replay) {
        graph.launch(stream);
        if (replay % 10 == 0)
          checked.all_reduce({.count = 77, .seed = 20 + replay}, comm, self.ranks, stream);
        if (replay % 10 == 9) stream.synchronize();
      }
      stream.synchronize();
      checked.verify("a first call in a capture");
      self.meet();
    }
    const LoadedOnehop onehop;
    if (onehop.found()) must(onehop.status(comm).taken == 3 + 5, "calls of the capture were not taken");
    self.meet();
    MUST(ncclCommDestroy(comm));
  }
}

}  // namespace onehop::test
