#include "test/standin/nccl/communicator.hpp"

#include <cstdlib>
#include <numeric>

#include "test/standin/nccl/loader.hpp"
#include "test/standin/nccl/log.hpp"

extern "C" cudaError_t onehop_standin_launch(cudaStream_t stream, void (*run)(void*), void (*drop)(void*),
                                             void* data);

namespace onehop::standin {
namespace {

/// What a rank says when the ranks meet.
struct Introduction {
  int ranks;
  cudaUUID_t gpu;
};

bool may_share_gpus() {
  const char* setting = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return setting != nullptr && std::atoi(setting) == 1;
}

struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;  ///< 0 while not capturing
};

cudaError_t find_capture(cudaStream_t stream, CaptureInfo& info) {
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, &info.status, &info.id, nullptr, nullptr, nullptr, nullptr);
#else
  return cudaStreamGetCaptureInfo(stream, &info.status, &info.id, nullptr, nullptr, nullptr);
#endif
}

/// The first error of a row of CUDA calls.
class CudaCalls {
 public:
  void operator()(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }
  ncclResult_t result() const {
    if (error_ == cudaSuccess) return ncclSuccess;
    warn("Cuda failure '%s'", cudaGetErrorString(error_));
    return ncclUnhandledCudaError;
  }

 private:
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

std::vector<int> everyone(int ranks) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Communicator::Communicator(int its_rank, int its_ranks, int its_device, bool is_blocking)
    : rank(its_rank), ranks(its_ranks), device(its_device), blocking(is_blocking) {
  cudaEventCreateWithFlags(&done_, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&capture_done_, cudaEventDisableTiming);
}

ncclResult_t Communicator::connect(const SharedHandle& handle) {
  std::optional<SharedMemory> memory = SharedMemory::open(handle);
  if (!memory || memory->bytes() < sizeof(Segment)) {
    warn("cannot map the memory of this communicator: is the process that made its id gone?");
    return ncclSystemError;
  }
  memory_.emplace(std::move(*memory));
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return ncclUnhandledCudaError;
  std::vector<Introduction> all;
  if (!exchange(Introduction{ranks, properties.uuid}, everyone(ranks), all)) return ncclInternalError;
  for (int a = 0; a < ranks; ++a) {
    if (all[a].ranks != ranks) {
      warn("rank %d expects %d ranks, rank %d expects %d", rank, ranks, a, all[a].ranks);
      return ncclInvalidUsage;
    }
    for (int b = 0; b < a && !may_share_gpus(); ++b) {
      if (std::memcmp(&all[a].gpu, &all[b].gpu, sizeof(cudaUUID_t)) != 0) continue;
      warn("Duplicate GPU detected : rank %d and rank %d both on one device", a, b);
      return ncclInvalidUsage;
    }
  }
  load_tuner_and_profiler();
  return ncclSuccess;
}

ncclResult_t Communicator::launch(cudaStream_t stream, std::function<void()> work) {
  using Work = std::function<void()>;
  CudaCalls call;
  CaptureInfo capture;
  call(find_capture(stream, capture));
  const bool capturing = capture.status != cudaStreamCaptureStatusNone;
  if (!capturing) {
    call(cudaStreamWaitEvent(stream, done_, 0));
  } else if (capture.id != capture_id_) {
    call(cudaStreamWaitEvent(stream, done_, cudaEventWaitExternal));
    capture_id_ = capture.id;
  } else {
    call(cudaStreamWaitEvent(stream, capture_done_, 0));
  }
  if (call.result() != ncclSuccess) return call.result();
  call(onehop_standin_launch(
      stream, [](void* data) { (*static_cast<Work*>(data))(); },
      [](void* data) { delete static_cast<Work*>(data); }, new Work(std::move(work))));
  if (capturing) {
    call(cudaEventRecord(capture_done_, stream));
    call(cudaEventRecordWithFlags(done_, stream, cudaEventRecordExternal));
  } else {
    call(cudaEventRecord(done_, stream));
  }
  return call.result();
}

bool Communicator::same_capture(cudaStream_t a, cudaStream_t b) {
  CaptureInfo first, second;
  return find_capture(a, first) == cudaSuccess && find_capture(b, second) == cudaSuccess &&
         first.id == second.id;
}

ncclResult_t Communicator::link(cudaStream_t stream, cudaStream_t other) {
  cudaEvent_t event = nullptr;
  CudaCalls call;
  call(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  call(cudaEventRecord(event, other));
  call(cudaStreamWaitEvent(stream, event, 0));
  call(cudaEventDestroy(event));
  return call.result();
}

void Communicator::drain() {
  cudaStreamCaptureMode mode =
      cudaStreamCaptureModeRelaxed;  // other threads' captures are none of our business
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaEventSynchronize(done_);
  cudaThreadExchangeStreamCaptureMode(&mode);
}

void Communicator::release_events() {
  cudaEventDestroy(done_);
  cudaEventDestroy(capture_done_);
}

namespace {

struct DeadHandles {
  std::mutex mutex;
  std::vector<ncclComm*> handles;
};

// Never destroyed: background threads outlive main().
DeadHandles& dead() {
  static auto* all = new DeadHandles;
  return *all;
}

}  // namespace

ncclComm* make_handle(CommunicatorRef communicator) {
  const std::lock_guard guard(dead().mutex);
  if (dead().handles.empty()) return new ncclComm{ncclComm::kMagic, std::move(communicator)};
  ncclComm* const comm = dead().handles.back();
  dead().handles.pop_back();
  *comm = {ncclComm::kMagic, std::move(communicator)};
  return comm;
}

void end_handle(ncclComm* comm) {
  *comm = {0, nullptr};
  const std::lock_guard guard(dead().mutex);
  dead().handles.push_back(comm);
}

ncclResult_t check_handle(const ncclComm* comm) {
  if (comm == nullptr) {
    warn("comm argument is NULL");
    return ncclInvalidArgument;
  }
  if (comm->magic != ncclComm::kMagic) {
    warn("Error: corrupted comm object detected");
    return ncclInvalidArgument;
  }
  return ncclSuccess;
}

ncclResult_t check_ready(const Communicator& communicator) {
  const ncclResult_t state = communicator.state;
  if (state == ncclInProgress) {
    warn("Attempt to use communicator before the previous operation returned ncclSuccess");
    return ncclInvalidArgument;
  }
  return state;
}

}  // namespace onehop::standin
