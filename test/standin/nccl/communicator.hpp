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
  uint64_t round_ = 0;  ///< rounds of exchange() so far

  cudaEvent_t done_ = nullptr;          ///< the newest work, eager or in a launch of a graph
  cudaEvent_t capture_done_ = nullptr;  ///< the newest work in the current capture
  unsigned long long capture_id_ = 0;
};
using CommunicatorRef = std::shared_ptr<Communicator>;

/// All ranks of a communicator, as members of an exchange.
std::vector<int> everyone(int ranks);

template <class Record>
bool Communicator::exchange(const Record& mine, const std::vector<int>& members, std::vector<Record>& all) {
  static_assert(sizeof(Record) <= sizeof(Board::record));
  Board* const board = segment()->board;
  const uint64_t round = ++round_;
  const auto reached = [&](std::atomic<uint64_t> Board::*count, uint64_t value) {
    return wait_until(cancelled, [&] {
      for (int member : members) {
        if ((board[member].*count).load(std::memory_order_acquire) < value) return false;
      }
      return true;
    });
  };
  if (!reached(&Board::read, round - 1)) return false;
  std::memcpy(board[rank].record, &mine, sizeof mine);
  board[rank].posted.store(round, std::memory_order_release);
  if (!reached(&Board::posted, round)) return false;
  all.assign(ranks, Record{});
  for (int member : members) std::memcpy(&all[member], board[member].record, sizeof(Record));
  board[rank].read.store(round, std::memory_order_release);
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

/// InvalidArgument for a null or dead handle.
ncclResult_t check_handle(const ncclComm* comm);
/// Whether the communicator can be used now.
ncclResult_t check_ready(const Communicator& communicator);

}  // namespace onehop::standin
