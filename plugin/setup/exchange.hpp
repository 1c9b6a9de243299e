// Every rank's record to every rank, over the communicator itself.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "plugin/setup/member.hpp"

namespace onehop {

using Members = std::vector<std::unique_ptr<Member>>;

/// Waits softly at first, since most exchanges take less than a millisecond.
class Pause {
 public:
  void wait_a_little() const;
  std::chrono::steady_clock::duration waited() const { return std::chrono::steady_clock::now() - start_; }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Waits while a non-blocking communicator is at work; then whether NCCL says that it is usable.
bool usable(const nccl::Functions&, nccl::Comm);

/// Waits for the exchange that send() enqueued on every pending member.
nccl::Result finish_exchange(const nccl::Functions&, Members&);

/// Waits on the host until the ranks of every pending member that live in this process have come here
/// (rendezvous.hpp).
void meet_in_process(Members&);

/// Exchanges what `make_record(member)` returns, for every pending member. Afterwards
/// member.all_records() holds them.
template <class MakeRecord>
nccl::Result exchange(const nccl::Functions& functions, Members& members, MakeRecord&& make_record) {
  // The records are made before the group is opened: making them may take CUDA calls that wait.
  nccl::Result result = nccl::kSuccess;
  for (auto& m : members)
    if (m->pending) m->put(make_record(*m));
  if (functions.GroupStart() != nccl::kSuccess) return nccl::kInternalError;
  for (auto& m : members) {
    if (!m->pending) continue;
    const nccl::Result sent = m->send(functions);
    if (sent != nccl::kSuccess && sent != nccl::kInProgress) result = sent;
  }
  const nccl::Result ended = functions.GroupEnd();
  if (result != nccl::kSuccess) return result;
  if (ended != nccl::kSuccess && ended != nccl::kInProgress) return ended;
  return finish_exchange(functions, members);
}

}  // namespace onehop
