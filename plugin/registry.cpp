#include "plugin/registry.hpp"

#include <algorithm>
#include <cstdint>

#include "plugin/communicator.hpp"

namespace onehop {
namespace {

/// Marks a slot whose communicator was removed: a search goes on past it.
const nccl::Comm kRemoved = reinterpret_cast<nccl::Comm>(uintptr_t{1});

template <class Slot>
bool living(const Slot& slot) {
  const nccl::Comm handle = slot.handle.load(std::memory_order_relaxed);
  return handle != nullptr && handle != kRemoved;
}

}  // namespace

Registry::Registry() {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_relaxed);
}

size_t Registry::Table::home(nccl::Comm handle) const {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return (bits * 0x9E3779B97F4A7C15ull >> 32) & (slots.size() - 1);
}

void Registry::Table::put(nccl::Comm handle, Communicator* communicator) {
  size_t at = home(handle);
  nccl::Comm there = slots[at].handle.load(std::memory_order_relaxed);
  while (there != nullptr && there != kRemoved) {
    at = (at + 1) & (slots.size() - 1);
    there = slots[at].handle.load(std::memory_order_relaxed);
  }
  if (there == nullptr) ++filled;
  slots[at].communicator.store(communicator, std::memory_order_relaxed);
  // Release, paired with the acquire in find(): whoever sees the handle sees the communicator behind it.
  slots[at].handle.store(handle, std::memory_order_release);
}

void Registry::Table::reclaim(size_t at) {
  // A communicator that was put in past `at` has no empty slot on its way, so the way ends before the next
  // one if that is empty. Without this a job that makes and destroys communicators for weeks fills the table
  // with removed ones.
  const size_t mask = slots.size() - 1;
  if (slots[(at + 1) & mask].handle.load(std::memory_order_relaxed) != nullptr) return;
  for (; slots[at].handle.load(std::memory_order_relaxed) == kRemoved; at = (at - 1) & mask) {
    slots[at].handle.store(nullptr, std::memory_order_relaxed);
    --filled;
  }
}

Communicator* Registry::find(nccl::Comm handle) const {
  if (handle == nullptr || handle == kRemoved) return nullptr;
  const Table& table = *table_.load(std::memory_order_acquire);
  for (size_t at = table.home(handle);; at = (at + 1) & (table.slots.size() - 1)) {
    const nccl::Comm found = table.slots[at].handle.load(std::memory_order_acquire);
    if (found == handle) return table.slots[at].communicator.load(std::memory_order_relaxed);
    if (found == nullptr) return nullptr;
  }
}

uint64_t Registry::announce(nccl::Comm handle) {
  const std::lock_guard lock(changes_);
  announcements_.push_back({++last_token_, handle});
  return last_token_;
}

bool Registry::announced(uint64_t token) const {
  const std::lock_guard lock(changes_);
  return std::any_of(announcements_.begin(), announcements_.end(),
                     [token](const Announcement& a) { return a.token == token; });
}

void Registry::withdraw(uint64_t token) {
  const std::lock_guard lock(changes_);
  std::erase_if(announcements_, [token](const Announcement& a) { return a.token == token; });
}

bool Registry::insert_announced(uint64_t token, std::unique_ptr<Communicator>& communicator) {
  const std::lock_guard lock(changes_);
  const auto found = std::find_if(announcements_.begin(), announcements_.end(),
                                  [token](const Announcement& a) { return a.token == token; });
  if (found == announcements_.end()) return false;
  insert_locked(found->handle, std::move(communicator));
  announcements_.erase(found);
  return true;
}

void Registry::insert(nccl::Comm handle, std::unique_ptr<Communicator> communicator) {
  const std::lock_guard lock(changes_);
  insert_locked(handle, std::move(communicator));
}

void Registry::insert_locked(nccl::Comm handle, std::unique_ptr<Communicator> communicator) {
  Table* table = tables_.back().get();
  if ((table->filled + 1) * 4 > table->slots.size() * 3) {
    auto larger = std::make_unique<Table>(table->slots.size() * 2);
    for (const Slot& slot : table->slots)
      if (living(slot)) larger->put(slot.handle.load(), slot.communicator.load());
    table = larger.get();
    tables_.push_back(std::move(larger));
  }
  table->put(handle, communicator.release());
  table_.store(table, std::memory_order_release);
}

std::unique_ptr<Communicator> Registry::remove(nccl::Comm handle) {
  if (handle == nullptr || handle == kRemoved) return nullptr;
  const std::lock_guard lock(changes_);
  std::erase_if(announcements_, [handle](const Announcement& a) { return a.handle == handle; });
  Table& table = *tables_.back();
  for (size_t at = table.home(handle);; at = (at + 1) & (table.slots.size() - 1)) {
    const nccl::Comm found = table.slots[at].handle.load(std::memory_order_relaxed);
    if (found == nullptr) return nullptr;
    if (found != handle) continue;
    std::unique_ptr<Communicator> removed(table.slots[at].communicator.load(std::memory_order_relaxed));
    table.slots[at].handle.store(kRemoved, std::memory_order_release);
    table.reclaim(at);
    return removed;
  }
}

void Registry::for_each(const std::function<void(nccl::Comm, Communicator&)>& visit) const {
  const std::lock_guard lock(changes_);
  for (const Slot& slot : tables_.back()->slots)
    if (living(slot)) visit(slot.handle.load(), *slot.communicator.load());
}

}  // namespace onehop
