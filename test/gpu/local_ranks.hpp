// All ranks of a communicator in one process and without NCCL: a stream for each, spread over the devices
// there are. What runs is the product's staging, order and kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "plugin/cuda/cuda_device.hpp"
#include "plugin/device_scope.hpp"
#include "plugin/order.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop::test {

inline void cuda_ok(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

/// Several ranks on one GPU have more streams than the 8 queues that a process gets by default; streams that
/// share a queue wait for each other, and a rank would wait for one that is queued behind it. Read when CUDA
/// is initialised, so set before main().
inline const bool kManyQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

/// Every wait of a kernel ends by itself after this long: a broken protocol must fail the test, not hang the
/// machine.
inline constexpr uint64_t kBudgetNs = 5'000'000'000;

/// Calls visit(piece) for the operations of at most `limit` elements that a call is made of: one or more, one
/// also for a call of no elements.
template <class Visit>
void for_each_piece(const Operation& call, size_t limit, Visit&& visit) {
  const size_t size = element_size(call.element);
  size_t done = 0;
  do {
    Operation piece = call;
    piece.send = static_cast<const unsigned char*>(call.send) + done * size;
    piece.receive = static_cast<unsigned char*>(call.receive) + done * size;
    piece.count = std::min(limit, call.count - done);
    visit(piece);
    done += piece.count;
  } while (done < call.count);
}

inline uint32_t packs_of(const Operation& operation) {
  return static_cast<uint32_t>((operation.count * element_size(operation.element) + sizeof(Pack) - 1) /
                               sizeof(Pack));
}

/// Blocks that a launch of one of `sharing` ranks of a device can have where nothing else runs there: twice
/// those of blocks_beside().
inline uint32_t blocks_alone(uint32_t sharing, int device) {
  int multiprocessors = 0;
  cuda_ok(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return std::clamp(static_cast<uint32_t>(multiprocessors) / sharing, 1u, kMaxBlocks);
}

struct Rank;
using ChooseGeometry = std::function<Geometry(const Rank&, const Operation&)>;

struct Rank {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::unique_ptr<Staging> staging;
  Order order;
  uint32_t max_blocks = 1;

  const CommView& view() const { return staging->view(); }
  /// May be asked while kernels run.
  bool stopped() const {
    return std::atomic_ref<uint32_t>(view().control->stop).load(std::memory_order_acquire) != 0;
  }

  /// Elements of the largest operation; 0: the method does not serve this communicator.
  size_t limit(Method method, Element element) const {
    const uint32_t packs =
        largest_operation(method, view().layout, word_kind(element), view().islands, wide_packs(element));
    return packs * (sizeof(Pack) / element_size(element));
  }

  /// geometry_for(), as far as the ranks that share the device leave room.
  Geometry geometry(const Operation& operation) const {
    Geometry geometry = geometry_for(operation.method, packs_of(operation), view());
    geometry.blocks = std::min(geometry.blocks, max_blocks);
    return geometry;
  }

  /// A call on a communicator whose calls are on one stream, in as many pieces as it takes.
  void launch(const Operation& call, cudaStream_t on, const ChooseGeometry& choose = nullptr) const {
    const CurrentDevice scope(*cuda_device(), device);
    const size_t largest = limit(call.method, call.element);
    ASSERT_GT(largest, 0u) << name_of(call.method) << " does not serve " << view().ranks << " ranks";
    for_each_piece(call, largest, [&](const Operation& piece) {
      cuda_ok(onehop::launch(view(), piece, choose ? choose(*this, piece) : geometry(piece), on));
    });
  }

  /// A call on any stream, in order with the others.
  void all_reduce(const Operation& call) { all_reduce(call, stream); }
  void all_reduce(const Operation& call, cudaStream_t on) {
    Device& device_interface = *cuda_device();
    const CurrentDevice scope(device_interface, device);
    const Result<StreamState> state = device_interface.state(on);
    ASSERT_TRUE(state) << state.reason();
    Status status = order.before(on, *state);
    ASSERT_TRUE(status) << status.reason();
    launch(call, on);
    status = order.after(on, *state);
    ASSERT_TRUE(status) << status.reason();
  }
};

struct NodeOptions {
  uint32_t ranks = 2;
  uint32_t inbox = 4096, outbox = 4096;  ///< packs, as in Layout: 64 KiB
  StagingKind kind = StagingKind::kPeer;
  std::optional<Islands> islands{};  ///< two of them, as equal as can be
  bool mixes = true;                 ///< operations are ordered across launches, as in the product
};

class LocalRanks {
 public:
  explicit LocalRanks(const NodeOptions& options) : options_(options), ranks_(options.ranks) {
    int devices = 0;
    cuda_ok(cudaGetDeviceCount(&devices));
    const Layout layout{options.ranks, options.inbox, options.outbox};
    const uint32_t sharing =
        (options.ranks + static_cast<uint32_t>(devices) - 1) / static_cast<uint32_t>(devices);
    std::vector<StagingAddress> addresses;
    Device& device = *cuda_device();
    for (uint32_t r = 0; r < options.ranks; ++r) {
      Rank& rank = ranks_[r];
      rank.device = static_cast<int>(r) % devices;
      rank.max_blocks = blocks_alone(sharing, rank.device);
      const CurrentDevice scope(device, rank.device);
      EXPECT_TRUE(device.load_kernels());
      cuda_ok(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
      rank.staging = std::make_unique<Staging>(device, r, options.kind, layout, kBudgetNs);
      const Status allocated = rank.staging->allocate(rank.stream);
      EXPECT_TRUE(allocated) << allocated.reason();
      rank.staging->view().islands = options.islands.value_or(equal_islands(options.ranks, 2));
      EXPECT_TRUE(rank.order.open(device, options.mixes));
      addresses.push_back(*rank.staging->address(1, rank.device, false));
    }
    for (uint32_t r = 0; r < options.ranks; ++r) {
      const CurrentDevice scope(device, ranks_[r].device);
      for (uint32_t peer = 0; peer < options.ranks; ++peer) {
        if (peer == r) continue;
        EXPECT_TRUE(ranks_[r].staging->map(peer, addresses[peer], 1, ranks_[r].device));
      }
    }
    for (Rank& rank : ranks_) rank.staging->close_name();
    synchronize();
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks() {
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      (void)cudaStreamSynchronize(rank.stream);
      (void)cudaStreamDestroy(rank.stream);
    }
    // Only now: an outbox is read by peers until their last kernel has returned.
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      rank.staging.reset();
    }
  }

  /// Fails where a kernel left because its budget was over.
  void synchronize() {
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      cuda_ok(cudaStreamSynchronize(rank.stream));
    }
    for (const Rank& rank : ranks_)
      ASSERT_FALSE(rank.stopped()) << "rank " << rank.view().rank << " waited for rank "
                                   << rank.view().control->missing_rank;
  }
  /// May be asked while kernels run.
  bool any_stopped() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.stopped(); });
  }

  /// As if the communicator had lived for `epoch` operations. No rank has sent anything.
  void continue_at(uint32_t epoch) {
    const Turn turn{epoch, epoch % kInboxSlots, 0, 0};
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      cuda_ok(cudaMemcpy(&rank.view().state->turn, &turn, sizeof(turn), cudaMemcpyHostToDevice));
      // Flags of fresh memory are 0, which is an epoch now; a communicator of that age has renewed them all.
      const size_t sentinels = rank.view().layout.sentinel_bytes();
      unsigned char* flags = rank.view().own + sentinels;
      if (options_.kind == StagingKind::kHost)
        std::memset(flags, 0x80, sentinels);
      else
        cuda_ok(cudaMemset(flags, 0x80, sentinels));
      cuda_ok(cudaDeviceSynchronize());
    }
  }

  const NodeOptions& options() const { return options_; }
  Rank& operator[](size_t r) { return ranks_[r]; }
  size_t size() const { return ranks_.size(); }
  auto begin() { return ranks_.begin(); }
  auto end() { return ranks_.end(); }

 private:
  const NodeOptions options_;
  std::vector<Rank> ranks_;
};

}  // namespace onehop::test
