// The threads of one launch on a CPU: std::barrier stands for __syncthreads. A missing sync() in the protocol
// is a data race here, which ThreadSanitizer sees.
#pragma once

#include <barrier>
#include <cstdint>
#include <deque>

#include "test/protocol/script.hpp"

namespace onehop::test {

/// What the blocks of one launch share: a barrier each.
class Launch {
 public:
  explicit Launch(const Shape& shape) : shape_(shape) {
    for (uint32_t i = 0; i < shape.blocks; ++i) barriers_.emplace_back(shape.threads);
  }
  const Shape& shape() const { return shape_; }
  void sync(uint32_t block) {
    if (shape_.threads > 1) barriers_[block].arrive_and_wait();
  }

 private:
  Shape shape_;
  std::deque<std::barrier<>> barriers_;
};

/// Thread `thread` of a launch, as the protocol sees it.
class HostGroup {
 public:
  HostGroup(Launch& launch, uint32_t thread)
      : launch_(launch),
        block_(thread / launch.shape().threads),
        lane_(thread % launch.shape().threads),
        keepers_(launch.shape().separate_keeper ? 1 : 0) {}

  uint32_t block() const { return block_; }
  uint32_t blocks() const { return launch_.shape().blocks; }
  bool is_keeper() const { return lane_ == 0; }
  bool is_worker() const { return lane_ >= keepers_; }
  uint32_t worker() const { return block_ * workers_per_block() + lane_ - keepers_; }
  uint32_t workers() const { return blocks() * workers_per_block(); }
  void sync() const { launch_.sync(block_); }

 private:
  uint32_t workers_per_block() const { return launch_.shape().threads - keepers_; }

  Launch& launch_;
  uint32_t block_;
  uint32_t lane_;
  uint32_t keepers_;
};

}  // namespace onehop::test
