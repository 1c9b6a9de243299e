// One rank of this process in a communicator that is being set up.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "plugin/device_scope.hpp"
#include "plugin/measure/timings.hpp"
#include "plugin/nccl_abi.hpp"
#include "plugin/order.hpp"
#include "plugin/plan.hpp"
#include "plugin/plan_file/machine.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop {

class Member {
 public:
  /// Every exchanged record has this many bytes, whatever is in it and whatever the version of onehop.
  static constexpr size_t kRecordBytes = 256;

  Member(Device& of, nccl::Comm comm) : device(of), handle(comm) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member();

  /// Asks NCCL for rank, size and device. False: NCCL says that this communicator is not usable.
  bool ask(const nccl::Functions&);
  /// A private stream and pinned memory for the exchanges.
  Status open();

  /// Sets the record of the next exchange; what the last one brought may be read until send().
  template <class Record>
  void put(const Record& record) {
    static_assert(sizeof(Record) == kRecordBytes && std::is_trivially_copyable_v<Record>);
    std::memcpy(pinned_, &record, sizeof(Record));
  }
  /// Enqueues the exchange on the private stream. NCCL reads and writes the pinned memory directly.
  nccl::Result send(const nccl::Functions&);
  template <class Record>
  std::span<const Record> all_records() const {
    static_assert(sizeof(Record) == kRecordBytes && std::is_trivially_copyable_v<Record>);
    return {reinterpret_cast<const Record*>(pinned_ + kRecordBytes), static_cast<size_t>(ranks)};
  }

  /// Only with a text that every rank comes to in the same way.
  void decline(std::optional<std::string> why) {
    if (!why || declined) return;
    declined = std::move(why);
    pending = false;
  }

  Device& device;
  const nccl::Comm handle;
  uint64_t announcement = 0;  ///< token of the registry, while it is set up
  int rank = -1, ranks = 0, device_index = -1;
  Stream stream = nullptr;
  std::optional<std::string> declined;
  bool takes_fp8 = false;    ///< on every rank
  bool shares_gpu = false;   ///< two of the ranks run on one GPU
  uint32_t on_this_gpu = 1;  ///< ranks that do, with this one
  uint32_t multiprocessors = 1;
  uint64_t id = 0;             ///< of the communicator, the same on all ranks
  uint32_t ranks_here = 0;     ///< that live in this process
  uint32_t meetings = 0;       ///< of those, so far
  uint32_t failed_probes = 0;  ///< kinds of staging that failed for one of the ranks before, a bit each
  bool users_unclear = false;  ///< whether all ranks run as one user is not known yet
  bool avoids_peers = false;   ///< NCCL is told to keep away from peer access, on some rank
  bool first_of_node = true;   ///< the one rank of its node that logs the verdict
  bool pending = true;         ///< takes part in the next exchange
  StagingKind kind = StagingKind::kPeer;    ///< that is tried, or was found to work
  Plan plan;                                ///< with that kind
  Timings timings;                          ///< empty: not measured
  std::optional<std::string> not_measured;  ///< although it was tried
  std::optional<Planned> planned;           ///< where every rank has the same plan file
  bool from_file = false;                   ///< the plan
  std::string refused;                      ///< kinds of staging that did not work, and why
  std::unique_ptr<Staging> staging;
  std::optional<PeerSocket> socket;  ///< while addresses are exchanged and mapped
  std::unique_ptr<Order> order;

 private:
  unsigned char* pinned_ = nullptr;  ///< this rank's record, then every rank's
};

}  // namespace onehop
