#include "test/gpu/life/rank.hpp"

#include <chrono>
#include <thread>

namespace onehop::test {

Rank::Rank(Shared& its_shared, int its_rank, int its_ranks, int its_process, std::string its_argument)
    : rank(its_rank),
      ranks(its_ranks),
      process(its_process),
      argument(std::move(its_argument)),
      shared(its_shared),
      own_(static_cast<uint32_t>(its_rank) + 100) {
  int devices = 0;
  step("starts");
  MUST(cudaGetDeviceCount(&devices));
  device = rank % devices;
  MUST(cudaSetDevice(device));
  load_device_work();
}

void Rank::meet() {
  ++meetings_;
  ++shared.arrived;
  const uint32_t all = meetings_ * static_cast<uint32_t>(ranks);
  while (shared.arrived.load() < all) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

ncclComm_t Rank::join() {
  if (joined_ == Shared::kIds) fail("no id is left for another communicator");
  Shared::Id& place = shared.ids[joined_++];
  if (rank == 0) {
    MUST(ncclGetUniqueId(&place.id));
    place.there.store(1, std::memory_order_release);
  }
  while (place.there.load(std::memory_order_acquire) == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  ncclComm_t comm = nullptr;
  MUST(ncclCommInitRank(&comm, ranks, place.id, rank));
  return comm;
}

void Rank::step(const std::string& text) {
  std::snprintf(shared.steps[rank], sizeof(shared.steps[rank]), "%s", text.c_str());
}

void Rank::wait_for_signal() const {
  shared.processes[process].wants_signal = 1;
  for (;;) pause();
}

double wait_until(const std::string& what, double seconds, const std::function<bool()>& done) {
  const double since = now_s();
  while (!done()) {
    if (now_s() - since > seconds) fail("waited more than " + std::to_string(seconds) + " s for " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return now_s() - since;
}

double wait_idle(cudaStream_t stream, double seconds, const std::string& what) {
  return wait_until(what, seconds, [&] {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaErrorNotReady) (void)cudaGetLastError();
    if (state != cudaSuccess && state != cudaErrorNotReady)
      fail("cudaStreamQuery: " + std::string(cudaGetErrorString(state)));
    return state == cudaSuccess;
  });
}

ncclResult_t async_error(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  MUST(ncclCommGetAsyncError(comm, &error));
  return error;
}

void all_reduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                cudaStream_t stream) {
  const auto capture_mode = [] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    cudaStreamCaptureMode same = mode;
    MUST(cudaThreadExchangeStreamCaptureMode(&same));
    return mode;
  };
  int before = -1, after = -1;
  MUST(cudaGetDevice(&before));
  const cudaStreamCaptureMode mode = capture_mode();
  MUST(ncclAllReduce(in, out, count, type, op, comm, stream));
  must(cudaPeekAtLastError(), "an error is left after ncclAllReduce");
  MUST(cudaGetDevice(&after));
  must(before == after, "ncclAllReduce changed the current device");
  must(capture_mode() == mode, "ncclAllReduce changed the thread's capture mode");
}

Graph::Graph(cudaStream_t stream, const std::function<void()>& work, cudaStreamCaptureMode mode) {
  MUST(cudaStreamBeginCapture(stream, mode));
  work();
  MUST(cudaStreamEndCapture(stream, &graph_));
  MUST(cudaGraphInstantiate(&executable_, graph_, 0));
}

Graph::~Graph() {
  MUST(cudaGraphExecDestroy(executable_));
  MUST(cudaGraphDestroy(graph_));
}

Checked::Checked(const Rank& of, size_t most_bytes) : Checked(static_cast<uint32_t>(of.rank), most_bytes) {}

Checked::Checked(uint32_t rank, size_t most_bytes) : rank_(rank), most_bytes_(most_bytes) {
  for (unsigned char** memory : {&in_, &out_})
    MUST(cudaMalloc(reinterpret_cast<void**>(memory), most_bytes_ + 4 * kGuard + 256));
  MUST(cudaMalloc(reinterpret_cast<void**>(&tally_), sizeof(Tally)));
  clear();
}

Checked::~Checked() {
  (void)cudaFree(in_);
  (void)cudaFree(out_);
  (void)cudaFree(tally_);
}

Pattern Checked::pattern(const Call& call, int ranks) const {
  return {static_cast<uint32_t>(call.type),
          static_cast<uint32_t>(call.op),
          static_cast<uint32_t>(ranks),
          rank_,
          call.seed,
          call.random};
}

Buffers Checked::buffers(const Call& call, size_t sent, size_t received) const {
  const size_t size = size_of(static_cast<uint32_t>(call.type)), shift = call.offset * size;
  must(std::max(sent, received) * size + shift <= most_bytes_ + 2 * kGuard, "the buffers are too small");
  Buffers b{in_ + shift, out_ + 2 * kGuard + shift, sent, received};
  if (call.in_place) b.in = b.out;
  return b;
}

void Checked::before(const Call& call, int ranks, cudaStream_t stream, Round round) {
  MUST(fill(pattern(call, ranks), buffers(call, call.count, call.count), round, call.delay_ns, stream));
}

void Checked::between(const Call& call, ncclComm_t comm, cudaStream_t stream) {
  const Buffers b = buffers(call, call.count, call.count);
  test::all_reduce(b.in, b.out, call.count, call.type, call.op, comm, stream);
}

void Checked::behind(const Call& call, int ranks, cudaStream_t stream, Round round) {
  MUST(check(pattern(call, ranks), buffers(call, call.count, call.count), Holds::kReduced, 0, 0, round,
             tally_, call.seed, stream));
}

void Checked::all_reduce(const Call& call, ncclComm_t comm, int ranks, cudaStream_t stream, Round round) {
  before(call, ranks, stream, round);
  between(call, comm, stream);
  behind(call, ranks, stream, round);
}

void Checked::all_gather(const Call& call, ncclComm_t comm, int ranks, cudaStream_t stream) {
  const Buffers b = buffers(call, call.count, call.count * static_cast<size_t>(ranks));
  MUST(fill(pattern(call, ranks), b, nullptr, call.delay_ns, stream));
  MUST(ncclAllGather(b.in, b.out, call.count, call.type, comm, stream));
  MUST(check(pattern(call, ranks), b, Holds::kGathered, call.count, 0, nullptr, tally_, call.seed, stream));
}

void Checked::broadcast(const Call& call, int root, ncclComm_t comm, int ranks, cudaStream_t stream) {
  const Buffers b = buffers(call, call.count, call.count);
  MUST(fill(pattern(call, ranks), b, nullptr, call.delay_ns, stream));
  MUST(ncclBroadcast(b.in, b.out, call.count, call.type, root, comm, stream));
  MUST(check(pattern(call, ranks), b, Holds::kOneRank, static_cast<size_t>(root), 0, nullptr, tally_,
             call.seed, stream));
}

void Checked::reduce_scatter(const Call& call, ncclComm_t comm, int ranks, cudaStream_t stream) {
  const Buffers b = buffers(call, call.count * static_cast<size_t>(ranks), call.count);
  MUST(fill(pattern(call, ranks), b, nullptr, call.delay_ns, stream));
  MUST(ncclReduceScatter(b.in, b.out, call.count, call.type, call.op, comm, stream));
  MUST(check(pattern(call, ranks), b, Holds::kReduced, 0, call.count * rank_, nullptr, tally_, call.seed,
             stream));
}

Tally Checked::tally() const {
  Tally tally;
  MUST(cudaMemcpy(&tally, tally_, sizeof(tally), cudaMemcpyDeviceToHost));
  return tally;
}

unsigned long long Checked::verify(const std::string& what) const {
  const Tally t = tally();
  if (t.wrong != 0) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  ": %llu of %llu elements are wrong; the first of call %llu: [%llu] %llx for %llx", t.wrong,
                  t.checked, t.tag, t.index, t.got, t.wanted);
    fail(what + ", rank " + std::to_string(rank_) + text);
  }
  return t.checked;
}

void Checked::clear() const {
  MUST(cudaMemset(tally_, 0, sizeof(Tally)));
  MUST(cudaDeviceSynchronize());
}

void load_device_work() {
  unsigned char* memory = nullptr;
  MUST(cudaMalloc(reinterpret_cast<void**>(&memory), 4096));
  MUST(cudaMemset(memory, 0, 4096));
  const Stream stream;
  const Pattern pattern;
  const Buffers buffers{memory + 256, memory + 1024, 1, 1};
  MUST(fill(pattern, buffers, nullptr, 1000, stream));
  MUST(check(pattern, buffers, Holds::kReduced, 0, 0, nullptr, reinterpret_cast<Tally*>(memory + 2048), 0,
             stream));
  MUST(advance(reinterpret_cast<uint32_t*>(memory), stream));
  MUST(note(reinterpret_cast<uint32_t*>(memory), 1, stream));
  MUST(wait_ns(1000, stream));
  stream.synchronize();
  MUST(cudaFree(memory));
}

std::map<std::string, CaseFunction>& cases() {
  static std::map<std::string, CaseFunction> all;
  return all;
}

}  // namespace onehop::test
