// Which communicators onehop knows, by their NCCL handle. Looking one up takes no lock; changes do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/nccl_abi.hpp"

namespace onehop {

class Communicator;

class Registry {
 public:
  Registry();

  /// Null if unknown. The communicator stays valid while the caller may use the NCCL handle, as NCCL's
  /// contract says: nobody may destroy a communicator that another thread is using.
  Communicator* find(nccl::Comm handle) const;

  /// The registry owns it from now on. `handle` is not in the registry.
  void insert(nccl::Comm handle, std::unique_ptr<Communicator>);

  /// The set-up of a communicator begins. Returns a token for it.
  uint64_t announce(nccl::Comm handle);
  /// Whether nobody has called remove() for it since: then its handle is no longer NCCL's.
  bool announced(uint64_t token) const;
  /// insert(), if it is still announced; else false, and the caller keeps it.
  bool insert_announced(uint64_t token, std::unique_ptr<Communicator>&);
  /// Its set-up is over.
  void withdraw(uint64_t token);

  /// Takes it out; null if unknown. A set-up of it learns of this too.
  std::unique_ptr<Communicator> remove(nccl::Comm handle);

  void for_each(const std::function<void(nccl::Comm, Communicator&)>&) const;

 private:
  struct Slot {
    std::atomic<nccl::Comm> handle{nullptr};
    std::atomic<Communicator*> communicator{nullptr};
  };
  /// Open addressing; a quarter or more of the slots is always empty, so a search ends.
  struct Table {
    explicit Table(size_t size) : slots(size) {}
    size_t home(nccl::Comm handle) const;
    void put(nccl::Comm handle, Communicator*);
    /// Empties the removed slots that end at `at`, if no search goes on past them.
    void reclaim(size_t at);
    std::vector<Slot> slots;  ///< a power of two
    size_t filled = 0;        ///< slots that hold a handle, or may have to be passed to find one
  };

  struct Announcement {
    uint64_t token;
    nccl::Comm handle;
  };

  /// With changes_ held.
  void insert_locked(nccl::Comm handle, std::unique_ptr<Communicator>);

  mutable std::mutex changes_;
  std::vector<Announcement> announcements_;  ///< few: of set-ups that are going on
  uint64_t last_token_ = 0;
  std::atomic<Table*> table_;
  std::vector<std::unique_ptr<Table>>
      tables_;  ///< the current one and its forerunners, which a reader may still search
};

}  // namespace onehop
