// All ranks of a communicator in one process and without NCCL: a stream for each, spread over the devices
// there are. What runs is the product's staging, order and kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

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

struct Rank {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::unique_ptr<Staging> staging;
  Order order;

  void all_reduce(const Operation& operation) { all_reduce(operation, stream); }
  void all_reduce(const Operation& operation, cudaStream_t on) {
    Device& device_interface = *cuda_device();
    const CurrentDevice scope(device_interface, device);
    const Result<Capture> capture = device_interface.capture(on);
    ASSERT_TRUE(capture) << capture.reason();
    Status status = order.before(on, *capture);
    ASSERT_TRUE(status) << status.reason();
    status = device_interface.launch(staging->view(), operation, on);
    ASSERT_TRUE(status) << status.reason();
    status = order.after(on, *capture);
    ASSERT_TRUE(status) << status.reason();
  }
};

class LocalRanks {
 public:
  /// `mixes`: operations are ordered across launches, as in the product.
  LocalRanks(int ranks, size_t max_bytes, bool mixes = true) : ranks_(static_cast<size_t>(ranks)) {
    int devices = 0;
    cuda_ok(cudaGetDeviceCount(&devices));
    const InboxLayout layout{static_cast<uint32_t>(ranks), static_cast<uint32_t>(max_bytes / sizeof(Pack))};
    std::vector<InboxAddress> addresses;
    Device& device = *cuda_device();
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      rank.device = static_cast<int>(r) % devices;
      const CurrentDevice scope(device, rank.device);
      EXPECT_TRUE(device.load_kernels());
      cuda_ok(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
      rank.staging = std::make_unique<Staging>(device, static_cast<uint32_t>(r), layout, kBudgetNs);
      EXPECT_TRUE(rank.staging->allocate(rank.stream));
      EXPECT_TRUE(rank.order.open(device, mixes));
      addresses.push_back(*rank.staging->address(1, rank.device, false));
    }
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const CurrentDevice scope(device, ranks_[r].device);
      for (uint32_t peer = 0; peer < ranks_.size(); ++peer) {
        if (peer == r) continue;
        EXPECT_TRUE(ranks_[r].staging->map(peer, addresses[peer], 1, ranks_[r].device));
      }
    }
    synchronize();
  }
  ~LocalRanks() {
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      (void)cudaStreamSynchronize(rank.stream);
      (void)cudaStreamDestroy(rank.stream);
      rank.staging.reset();
    }
  }

  /// Fails where a kernel left because its budget was over.
  void synchronize() {
    for (Rank& rank : ranks_) {
      const CurrentDevice scope(*cuda_device(), rank.device);
      cuda_ok(cudaStreamSynchronize(rank.stream));
      ASSERT_EQ(rank.staging->view().control->stop, 0u)
          << "waited for rank " << rank.staging->view().control->missing_rank;
    }
  }

  Rank& operator[](size_t r) { return ranks_[r]; }
  size_t size() const { return ranks_.size(); }
  auto begin() { return ranks_.begin(); }
  auto end() { return ranks_.end(); }

 private:
  std::vector<Rank> ranks_;
};

}  // namespace onehop::test
