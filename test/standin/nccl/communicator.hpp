// A communicator of this rank: where it stands, and how its operations are put in order.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "test/standin/nccl/segment.hpp"
#include "test/standin/shared_memory.hpp"

namespace onehop::standin {

/// What ncclRedOpCreatePreMulSum made.
struct UserOp {
  bool alive = false;
  ncclDataType_t type = ncclFloat32;
  const void* device_scalar = nullptr;  ///< read when the operation runs; null: `scalar`
  unsigned char scalar[8] = {};
};

class Communicator {
 public:
  Communicator(int its_rank, int its_ranks, int its_device, bool is_blocking);

  const int rank;
  const int ranks;
  const int device;
  const bool blocking;

  std::atomic<ncclResult_t> state{ncclSuccess};  ///< what ncclCommGetAsyncError says
  std::atomic<bool> stop{false};                 ///< operations leave without a result
  std::atomic<bool> cancelled{false};            ///< so do set-up and split: ncclCommAbort
  std::atomic<bool> revoked{false};
  std::atomic<bool> finalized{false};
  std::vector<UserOp> user_ops;

  /// Maps the shared memory and meets the other ranks.
  ncclResult_t connect(const SharedHandle& handle);
  /// Every member posts a record and gets all of them, by rank. False: cancelled.
  template <class Record>
  bool exchange(const Record& mine, const std::vector<int>& members, std::vector<Record>& all);

  /// Enqueues work behind all earlier work of this communicator, whatever streams and graphs that is in. The
  /// work keeps what it needs alive, but must not own the communicator's events.
  ncclResult_t launch(cudaStream_t stream, std::function<void()> work);
  /// Whether both streams are in the same capture, or both in none.
  static bool same_capture(cudaStream_t a, cudaStream_t b);
  /// Makes `stream` wait for what is on `other`.
  ncclResult_t link(cudaStream_t stream, cudaStream_t other);
  /// Returns when the work enqueued so far is done.
  void drain();
  /// Before the last use of the handle; work that still runs is unaffected.
  void release_events();

  // For work on the streams, which runs one at a time.
  Segment* segment() const { return static_cast<Segment*>(memory_->data()); }
  uint64_t step = 0;  ///< steps of collectives so far

 private:
  std::optional<SharedMemory> memory_;

  cudaEvent_t done_ = nullptr;          ///< the newest work, eager or in a launch of a graph
  cudaEvent_t capture_done_ = nullptr;  ///< the newest work in the current capture
  unsigned long long capture_id_ = 0;
};
using CommunicatorRef = std::shared_ptr<Communicator>;

/// All ranks of a communicator, as members of an exchange.
std::vector<int> everyone(int ranks);

template <class Record>
bool Communicator::exchange(const Record& mine, const std::vector<int>& members, std::vector<Record>& all) {
  static_assert(sizeof(Record) <= sizeof(Mail::record));
  Mail(&mail)[kMaxCommRanks][kMaxCommRanks] = segment()->mail;
  for (int member : members) {
    Mail& out = mail[rank][member];
    const uint64_t posted = out.posted.load(std::memory_order_relaxed);
    if (!wait_until(cancelled, [&] { return out.read.load(std::memory_order_acquire) == posted; }))
      return false;
    std::memcpy(out.record, &mine, sizeof mine);
    out.posted.store(posted + 1, std::memory_order_release);
  }
  all.assign(ranks, Record{});
  for (int member : members) {
    Mail& in = mail[member][rank];
    const uint64_t read = in.read.load(std::memory_order_relaxed);
    if (!wait_until(cancelled, [&] { return in.posted.load(std::memory_order_acquire) > read; }))
      return false;
    std::memcpy(&all[member], in.record, sizeof(Record));
    in.read.store(read + 1, std::memory_order_release);
  }
  return true;
}

}  // namespace onehop::standin

/// The opaque type behind ncclComm_t.
struct ncclComm {
  static constexpr uint64_t kMagic = 0x0280028002800280;
  uint64_t magic = kMagic;
  onehop::standin::CommunicatorRef communicator;
};

namespace onehop::standin {

/// A dead handle's address is the next one's, at once: whoever keeps state by address must have noticed its
/// end.
ncclComm* make_handle(CommunicatorRef communicator);
void end_handle(ncclComm* comm);

/// InvalidArgument for a null or dead handle.
ncclResult_t check_handle(const ncclComm* comm);
/// Whether the communicator can be used now.
ncclResult_t check_ready(const Communicator& communicator);

}  // namespace onehop::standin
