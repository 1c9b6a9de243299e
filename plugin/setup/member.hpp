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
#include "plugin/nccl_abi.hpp"
#include "plugin/order.hpp"
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
    if (why && !declined) declined = std::move(why);
  }

  Device& device;
  const nccl::Comm handle;
  uint64_t announcement = 0;  ///< token of the registry, while it is set up
  int rank = -1, ranks = 0, device_index = -1;
  Stream stream = nullptr;
  std::optional<std::string> declined;
  bool takes_fp8 = false;     ///< on every rank
  bool first_of_node = true;  ///< the one rank of its node that logs the verdict
  std::unique_ptr<Staging> staging;
  std::unique_ptr<Order> order;

 private:
  unsigned char* pinned_ = nullptr;  ///< this rank's record, then every rank's
};

}  // namespace onehop
