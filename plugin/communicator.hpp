// What onehop holds for one NCCL communicator: on with a plan, or off with a reason.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "kernels/operation.hpp"
#include "plugin/device.hpp"
#include "plugin/nccl_abi.hpp"
#include "plugin/order.hpp"
#include "plugin/plan.hpp"
#include "plugin/plan_file/machine.hpp"
#include "plugin/staging/staging.hpp"
#include "plugin/statistics_page.hpp"

namespace onehop {

class Communicator {
 public:
  /// Off.
  explicit Communicator(std::string reason);
  /// On. `staging` holds the memory that the kernels use.
  Communicator(Device&, int device_index, Plan, std::unique_ptr<Staging>, std::unique_ptr<Order>);

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  bool on() const { return staging_ != nullptr; }
  const std::string& reason() const { return reason_; }
  const Plan& plan() const { return plan_; }
  /// For measuring plans (onehopSetPlan): what a plan file is looked up by.
  void allow_plans(Planned planned) { planned_ = std::move(planned); }
  const std::optional<Planned>& planned() const { return planned_; }
  /// Not while a call is under way. Collective.
  void set_plan(const Plan& plan) {
    plan_ = plan;
    staging_->view().islands = plan.islands;
  }

  const CommunicatorRecord& record() const { return *record_; }
  Statistics& statistics() { return record_->statistics; }
  const Statistics& statistics() const { return record_->statistics; }
  /// What the statistics say of it, besides its counters.
  void list(const StatisticsSnapshot::Listed& facts);
  /// Its calls become those of a destroyed communicator. Nothing is counted any more.
  void leave_statistics();

  /// The user's switch (onehopEnable).
  void switch_to(bool take) { takes_.store(take, std::memory_order_relaxed); }
  bool takes() const { return takes_.load(std::memory_order_relaxed); }

  /// Ends the taking of calls, for good; what is in flight goes on (ncclCommFinalize).
  void close(std::string reason);
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  /// Why waiting kernels leave, if they must. Any thread.
  Stop stopped() const;
  /// What stopped() last returned: for the end of the process, when the memory that it looks at may be gone.
  Stop last_stopped() const { return last_stopped_.load(std::memory_order_relaxed); }
  /// The rank whose data did not come, after Stop::kTimeout.
  uint32_t missing_rank() const;
  /// Makes waiting kernels leave and every later call fail. Any thread; never waits.
  void abort();

  /// Enqueues one all-reduce, in as many operations of up to `piece` elements as it takes. On the call path.
  /// The caller has decided that this communicator takes it.
  nccl::Result run(const Operation&, size_t piece, Stream);

  /// Around a call that is passed to NCCL while this communicator is on: NCCL promises that the operations of
  /// a communicator run one after another whatever streams they use, so a passed call must wait for onehop's,
  /// and onehop's for it.
  /// `state` is what before_passed() found: nothing else is captured or ended meanwhile.
  std::optional<StreamState> before_passed(Stream);
  void after_passed(Stream, const std::optional<StreamState>& state);

  /// For a group with calls of this communicator on several streams, which NCCL treats as posted on each of
  /// them: its first call, on `first`, waits for what `other` holds; and `stream` waits for all calls of the
  /// group.
  void join_before(Stream first, Stream other);
  void join_after(Stream stream) { (void)before_passed(stream); }

  /// Waits until what was enqueued is done, or the communicator is stopped.
  void drain();

 private:
  const std::string reason_;
  Device* device_ = nullptr;
  int device_index_ = -1;
  Plan plan_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Order> order_;
  CommunicatorRecord* record_;  ///< null once it has left the statistics
  std::optional<Planned> planned_;
  std::atomic<bool> takes_{true}, closed_{false};
  mutable std::atomic<Stop> last_stopped_{Stop::kNone};
};

}  // namespace onehop
