#include "tools/onehop/bench/ranks.hpp"

#include <chrono>
#include <thread>

namespace onehop::bench {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

Ranks::Ranks(const Libraries& libraries, RanksPlan plan, Fail fail)
    : libraries_(libraries), plan_(std::move(plan)), fail_(std::move(fail)), ranks_(plan_.devices.size()) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].rank = plan_.first + static_cast<int>(i);
    ranks_[i].device = plan_.devices[i];
    if (lanes_.empty() || !plan_.group) lanes_.emplace_back();
    lanes_.back().push_back(&ranks_[i]);
  }
}

void Ranks::must(cudaError_t error, const char* what) const {
  if (error != cudaSuccess) fail_(std::string(what) + ": " + libraries_.cuda.GetErrorString(error));
}

void Ranks::must(ncclResult_t result, const char* what) const {
  if (result != ncclSuccess) fail_(std::string(what) + ": " + libraries_.nccl.GetErrorString(result));
}

template <class Part>
void Ranks::in_lanes(Part&& part) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lanes_.size(); ++i) threads.emplace_back([&, i] { part(lanes_[i]); });
  part(lanes_[0]);
  for (std::thread& thread : threads) thread.join();
}

void Ranks::synchronize(const Lane& lane) const {
  // Not the device: with ranks of other threads on it that would wait for what they have not enqueued yet.
  for (const Rank* rank : lane) {
    use(*rank);
    must(libraries_.cuda.StreamSynchronize(rank->stream), "cudaStreamSynchronize");
    if (case_.mode == Mode::kGraphDefault)
      must(libraries_.cuda.StreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
}

void Ranks::open(const ncclUniqueId& id) {
  const Cuda& cuda = libraries_.cuda;
  must(libraries_.nccl.GroupStart(), "ncclGroupStart");
  for (Rank& rank : ranks_) {
    use(rank);
    must(libraries_.nccl.CommInitRank(&rank.comm, plan_.ranks, id, rank.rank), "ncclCommInitRank");
  }
  must(libraries_.nccl.GroupEnd(), "ncclGroupEnd");
  for (Rank& rank : ranks_) {
    use(rank);
    must(cuda.StreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cuda.EventCreateWithFlags(&rank.start, cudaEventDefault), "cudaEventCreate");
    must(cuda.EventCreateWithFlags(&rank.stop, cudaEventDefault), "cudaEventCreate");
    for (unsigned char** buffer : {&rank.send, &rank.receive})
      must(cuda.Malloc(reinterpret_cast<void**>(buffer), plan_.memory), "cudaMalloc");
  }
}

double Ranks::set_up() {
  case_ = {Mode::kEager, find_type("float32"), false, 64, 1, ""};
  fill(0);
  const auto start = Clock::now();
  run_once();
  return microseconds_since(start) / 1000;
}

void Ranks::close() {
  in_lanes([&](const Lane& lane) { synchronize(lane); });
  must(libraries_.nccl.GroupStart(), "ncclGroupStart");
  for (Rank& rank : ranks_) {
    use(rank);
    must(libraries_.nccl.CommDestroy(rank.comm), "ncclCommDestroy");
  }
  must(libraries_.nccl.GroupEnd(), "ncclGroupEnd");
}

void Ranks::fill(size_t turn) {
  const size_t stride = stride_of(case_.bytes);
  std::vector<unsigned char> bytes(stride * case_.calls);
  for (Rank& rank : ranks_) {
    for (size_t k = 0; k < case_.calls; ++k)
      repeat(contents(*case_.type, static_cast<size_t>(rank.rank), k, turn), &bytes[k * stride], case_.bytes);
    use(rank);
    must(libraries_.cuda.Memcpy(rank.send, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    must(libraries_.cuda.Memset(rank.receive, 0xA5, bytes.size()), "cudaMemset");
    must(libraries_.cuda.StreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  turn_ = turn;
}

size_t Ranks::count_wrong(size_t turn) {
  const size_t stride = stride_of(case_.bytes);
  std::vector<unsigned char> bytes(stride * case_.calls);
  size_t wrong = 0;
  for (const Rank& rank : ranks_) {
    use(rank);
    must(libraries_.cuda.Memcpy(bytes.data(), case_.in_place ? rank.send : rank.receive, bytes.size(),
                                cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    for (size_t k = 0; k < case_.calls; ++k)
      wrong += bench::count_wrong(sums(*case_.type, static_cast<size_t>(plan_.ranks), k, turn),
                                  &bytes[k * stride], case_.bytes, case_.type->size);
  }
  return wrong;
}

void Ranks::call(const Lane& lane, size_t number) const {
  const size_t offset = number * stride_of(case_.bytes);
  if (lane.size() > 1) must(libraries_.nccl.GroupStart(), "ncclGroupStart");
  for (const Rank* rank : lane) {
    if (lane.size() > 1) use(*rank);
    unsigned char* receive = case_.in_place ? rank->send : rank->receive;
    must(libraries_.nccl.AllReduce(rank->send + offset, receive + offset, case_.bytes / case_.type->size,
                                   case_.type->nccl, ncclSum, rank->comm, rank->stream),
         "ncclAllReduce");
  }
  if (lane.size() > 1) must(libraries_.nccl.GroupEnd(), "ncclGroupEnd");
}

void Ranks::capture(const Lane& lane) {
  const Cuda& cuda = libraries_.cuda;
  for (const Rank* rank : lane) {
    use(*rank);
    must(cuda.StreamBeginCapture(rank->stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  }
  for (size_t k = 0; k < case_.calls; ++k) call(lane, k);
  for (Rank* rank : lane) {
    use(*rank);
    cudaGraph_t graph = nullptr;
    must(cuda.StreamEndCapture(rank->stream, &graph), "cudaStreamEndCapture");
    must(cuda.GraphInstantiateWithFlags(&rank->graph, graph, 0), "cudaGraphInstantiate");
    must(cuda.GraphUpload(rank->graph, rank->stream), "cudaGraphUpload");
    must(cuda.StreamSynchronize(rank->stream), "cudaStreamSynchronize");
    must(cuda.GraphDestroy(graph), "cudaGraphDestroy");
  }
}

void Ranks::drop_graphs() {
  for (Rank& rank : ranks_) {
    if (rank.graph == nullptr) continue;
    use(rank);
    must(libraries_.cuda.GraphExecDestroy(rank.graph), "cudaGraphExecDestroy");
    rank.graph = nullptr;
  }
}

/// All streams wait at the gate until every lane has enqueued its part.
void Ranks::replay(const Lane& lane) {
  const Cuda& cuda = libraries_.cuda;
  for (const Rank* rank : lane) {
    cudaStream_t stream = replay_stream(*rank);
    use(*rank);
    must(cuda.LaunchHostFunc(stream, &Gate::wait, &gate_), "cudaLaunchHostFunc");
    must(cuda.EventRecord(rank->start, stream), "cudaEventRecord");
    must(cuda.GraphLaunch(rank->graph, stream), "cudaGraphLaunch");
    must(cuda.EventRecord(rank->stop, stream), "cudaEventRecord");
  }
  if (lanes_to_come_.fetch_sub(1) == 1) gate_.open();
  synchronize(lane);
}

void Ranks::run_once() {
  gate_.close();
  lanes_to_come_ = lanes_.size();
  in_lanes([&](const Lane& lane) {
    if (case_.mode == Mode::kEager) {
      for (const Rank* rank : lane) use(*rank);
      for (size_t k = 0; k < case_.calls; ++k) call(lane, k);
      synchronize(lane);
    } else {
      replay(lane);
    }
  });
}

size_t Ranks::prepare(const Case& what) {
  case_ = what;
  fill(turn_ + 1);
  if (case_.mode != Mode::kEager) {
    // NCCL connects what a size needs at its first call; not within the capture.
    case_.calls = 1;
    in_lanes([&](const Lane& lane) {
      for (const Rank* rank : lane) use(*rank);
      call(lane, 0);
      synchronize(lane);
    });
    case_.calls = what.calls;
    fill(turn_ + 1);
    in_lanes([&](const Lane& lane) { capture(lane); });
  }
  run_once();
  const size_t wrong = count_wrong(turn_);
  // In place the measured runs would reduce their own sums again and again: zeros stay zeros.
  if (case_.in_place)
    for (const Rank& rank : ranks_) {
      use(rank);
      must(libraries_.cuda.Memset(rank.send, 0, stride_of(case_.bytes) * case_.calls), "cudaMemset");
      must(libraries_.cuda.StreamSynchronize(nullptr), "cudaStreamSynchronize");
    }
  return wrong;
}

Times Ranks::measure(size_t samples) {
  run_once();
  return case_.mode == Mode::kEager ? measure_eager(samples) : measure_graph(samples);
}

Times Ranks::measure_graph(size_t samples) {
  Times times{std::vector<std::vector<double>>(ranks_.size()), {}};
  for (size_t i = 0; i < samples; ++i) {
    run_once();
    for (size_t r = 0; r < ranks_.size(); ++r) {
      float ms = 0;
      use(ranks_[r]);
      must(libraries_.cuda.EventElapsedTime(&ms, ranks_[r].start, ranks_[r].stop), "cudaEventElapsedTime");
      times.us[r].push_back(ms * 1000.0 / static_cast<double>(case_.calls));
    }
  }
  return times;
}

Times Ranks::measure_eager(size_t samples) {
  Times times{std::vector<std::vector<double>>(ranks_.size()),
              std::vector<std::vector<double>>(ranks_.size())};
  const auto calls = static_cast<double>(case_.calls);
  in_lanes([&](const Lane& lane) {
    const auto here = static_cast<double>(lane.size());
    for (size_t i = 0; i < samples; ++i) {
      for (const Rank* rank : lane) use(*rank);
      call(lane, 0);  // brings the ranks into step
      synchronize(lane);
      const Clock::time_point start = Clock::now();
      for (size_t k = 0; k < case_.calls; ++k) call(lane, k);
      const double host = microseconds_since(start);
      synchronize(lane);
      const double all = microseconds_since(start);
      for (const Rank* rank : lane) {
        const size_t r = static_cast<size_t>(rank->rank - plan_.first);
        times.us[r].push_back(all / calls);
        times.host_us[r].push_back(host / calls / here);
      }
    }
  });
  return times;
}

size_t Ranks::finish() {
  // Out of place the last measured run left the sums of the contents it was given.
  size_t wrong = case_.in_place ? 0 : count_wrong(turn_);
  fill(turn_ + 1);
  run_once();
  wrong += count_wrong(turn_);
  drop_graphs();
  return wrong;
}

}  // namespace onehop::bench
