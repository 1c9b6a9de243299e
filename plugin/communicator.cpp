#include "plugin/communicator.hpp"

#include <chrono>
#include <thread>

#include "plugin/device_scope.hpp"
#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/pieces.hpp"

namespace onehop {

Communicator::Communicator(std::string reason)
    : reason_(std::move(reason)), record_(&globals().statistics.enter()) {
  list({.state = RecordState::kOff, .reason = reason_});
}

Communicator::Communicator(Device& device, int device_index, Plan plan, std::unique_ptr<Staging> staging,
                           std::unique_ptr<Order> order)
    : device_(&device),
      device_index_(device_index),
      plan_(plan),
      staging_(std::move(staging)),
      order_(std::move(order)),
      record_(&globals().statistics.enter()) {
  globals().staging_bytes += staging_->bytes();
  list({.state = RecordState::kOn});
}

Communicator::~Communicator() {
  leave_statistics();
  if (!on()) return;
  const CurrentDevice scope(*device_, device_index_);
  const RelaxedCapture relaxed(*device_);
  globals().staging_bytes -= staging_->bytes();
  order_.reset();
  staging_.reset();
}

void Communicator::list(const StatisticsSnapshot::Listed& facts) {
  globals().statistics.list(*record_, facts);
}

void Communicator::leave_statistics() {
  if (record_ != nullptr) globals().statistics.leave(*record_);
  record_ = nullptr;
}

void Communicator::close(std::string reason) {
  log::debug("communicator closed: {}", reason);
  if (record_ != nullptr) globals().statistics.close(*record_, "finalized");
  closed_.store(true, std::memory_order_release);
}

Stop Communicator::stopped() const {
  if (!on()) return Stop::kNone;
  // Acquire, paired with the release of the kernel's report(): the missing rank is there when the stop word
  // is.
  const auto stop =
      static_cast<Stop>(std::atomic_ref(staging_->view().control->stop).load(std::memory_order_acquire));
  if (stop != Stop::kNone) [[unlikely]] {
    last_stopped_.store(stop, std::memory_order_relaxed);
    if (record_ != nullptr)
      std::atomic_ref(record_->state).store(RecordState::kFailed, std::memory_order_relaxed);
  }
  return stop;
}

uint32_t Communicator::missing_rank() const {
  return std::atomic_ref(staging_->view().control->missing_rank).load(std::memory_order_relaxed);
}

void Communicator::abort() {
  if (!on()) return;
  // A reason that is already there stays.
  uint32_t none = static_cast<uint32_t>(Stop::kNone);
  std::atomic_ref(staging_->view().control->stop)
      .compare_exchange_strong(none, static_cast<uint32_t>(Stop::kAbort), std::memory_order_release,
                               std::memory_order_relaxed);
}

nccl::Result Communicator::run(const Operation& operation, size_t piece, Stream stream) {
  const CurrentDevice scope(*device_, device_index_);
  const Result<StreamState> state = device_->state(stream);
  Status status = state ? order_->before(stream, *state) : Status{state.error()};
  if (status) status = launch_in_pieces(*device_, staging_->view(), operation, piece, stream);
  if (status) status = order_->after(stream, *state);
  if (status) return nccl::kSuccess;
  // No way back to NCCL from here: peers may already be waiting in their kernels.
  log::error("an all-reduce could not be enqueued: {}", status.reason());
  return nccl::kUnhandledCudaError;
}

std::optional<StreamState> Communicator::before_passed(Stream stream) {
  if (!on()) return std::nullopt;
  const CurrentDevice scope(*device_, device_index_);
  const Result<StreamState> state = device_->state(stream);
  const Status status = state ? order_->before(stream, *state) : Status{state.error()};
  if (!status) log::error("a call could not be ordered behind onehop's: {}", status.reason());
  return state ? std::optional(*state) : std::nullopt;
}

void Communicator::after_passed(Stream stream, const std::optional<StreamState>& state) {
  if (!state) return;
  const CurrentDevice scope(*device_, device_index_);
  const Status status = order_->after_passed(stream, *state);
  if (!status) log::error("onehop's calls could not be ordered behind a passed one: {}", status.reason());
}

void Communicator::join_before(Stream first, Stream other) {
  if (!on()) return;
  const CurrentDevice scope(*device_, device_index_);
  const Status status = order_->join(first, other);
  if (!status) log::error("the streams of a group could not be joined: {}", status.reason());
}

void Communicator::drain() {
  if (!on()) return;
  const CurrentDevice scope(*device_, device_index_);
  const RelaxedCapture relaxed(*device_);
  while (stopped() == Stop::kNone) {
    const Result<bool> idle = order_->idle();
    if (!idle || *idle) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace onehop
