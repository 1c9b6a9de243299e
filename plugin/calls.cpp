#include "plugin/calls.hpp"

#include <algorithm>

#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"
#include "plugin/setup/set_up.hpp"

namespace onehop::calls {
namespace {

bool is_error(nccl::Result result) {
  return result != nccl::kSuccess && result != nccl::kInProgress;
}

nccl::Result pass(Image& image, const Call& call, Statistics& statistics, Pass why) {
  statistics.count_passed(call.bytes(), why);
  const nccl::Result result = image.original.AllReduce(
      call.send, call.receive, call.facts.count, call.facts.type, call.facts.op, call.comm, call.stream);
  // A call with a wrong argument makes NCCL drop the whole group that it stands in.
  if (is_error(result)) group_of(image).dropped = true;
  return result;
}

/// Whether NCCL must see this call whatever the communicator: it would return an error, or do nothing.
bool is_for_nccl(const Call& call) {
  return call.comm == nullptr || call.send == nullptr || call.receive == nullptr ||
         bytes_of(call.facts.type) == 0 || globals().forked.load(std::memory_order_relaxed);
}

/// Whether NCCL knows the handle. To queue a call with another until the end of its group would answer
/// success where NCCL answers with an error.
bool is_valid(Image& image, nccl::Comm handle) {
  nccl::Result state = nccl::kSuccess;
  return image.original.CommGetAsyncError(handle, &state) == nccl::kSuccess;
}

Decision decide_for(const Communicator& comm, const Call& call) {
  if (!comm.on() || comm.closed()) return {{}, Pass::kDeclined};
  if (!comm.takes()) return {{}, Pass::kSwitchedOff};
  // After an abort NCCL itself knows what to return.
  if (comm.stopped() == Stop::kAbort) return {{}, Pass::kDeclined};
  return decide(call.facts, comm.plan());
}

nccl::Result launch(Communicator& comm, const Call& call, const Served& served) {
  if (comm.stopped() == Stop::kTimeout) return nccl::kRemoteError;
  comm.statistics().count_taken(call.bytes(), served.method);
  return comm.run({call.send, call.receive, call.facts.count, served.element, served.reduction, served.method,
                   static_cast<uint8_t>(served.most.blocks), static_cast<uint16_t>(served.most.workers)},
                  served.piece, call.stream);
}

/// A call on a communicator that is set up. It is enqueued at once, or by NCCL at the end of the open group.
nccl::Result pass(Image& image, Communicator& comm, const Call& call, Pass why) {
  const std::optional<StreamState> state = comm.before_passed(call.stream);
  const nccl::Result result = pass(image, call, comm.statistics(), why);
  Group& group = group_of(image);
  if (group.depth > 0)
    group.passed.push_back({call.comm, call.stream, state});
  else
    comm.after_passed(call.stream, state);
  return result;
}

/// A call on a communicator that is set up, to be enqueued now.
nccl::Result perform(Image& image, Communicator& comm, const Call& call) {
  const Decision decision = decide_for(comm, call);
  if (!decision.served) return pass(image, comm, call, decision.pass);
  return launch(comm, call, *decision.served);
}

/// The first error wins; ncclInProgress is none.
void keep_error(nccl::Result& kept, nccl::Result result) {
  if (!is_error(kept) && result != nccl::kSuccess) kept = result;
}

/// Calls `visit(comm, first, other)` for each communicator of the group that has calls on more than one
/// stream: once for each stream beside the first one. Most groups have none. On the call path, so it looks
/// back instead of taking notes.
template <class Visit>
void for_each_other_stream(const Group& group, Visit&& visit) {
  const size_t queued = group.queued.size(), all = queued + group.passed.size();
  const auto at = [&](size_t i) {
    if (i >= queued) return group.passed[i - queued];
    const auto& [call, decided] = group.queued[i];
    return decided ? Group::Passed{call.comm, call.stream} : Group::Passed{};
  };
  for (size_t i = 1; i < all; ++i) {
    const Group::Passed call = at(i);
    size_t same_comm = i;  // the first call of this communicator
    bool known = false;
    for (size_t j = i; j-- > 0;) {
      const Group::Passed before = at(j);
      if (before.comm != call.comm) continue;
      known = known || before.stream == call.stream;
      same_comm = j;
    }
    if (call.comm == nullptr || same_comm == i || known) continue;
    if (Communicator* comm = globals().registry.find(call.comm))
      visit(*comm, at(same_comm).stream, call.stream);
  }
}

/// The end of NCCL's own group: enqueues what was passed in it, and orders it with onehop's calls.
nccl::Result end_of_nccl_group(Image& image, Group& group) {
  const nccl::Result result = image.original.GroupEnd();
  group.depth = 0;
  for (const auto& [handle, stream, state] : group.passed)
    if (Communicator* comm = globals().registry.find(handle)) comm->after_passed(stream, state);
  for_each_other_stream(group, [](Communicator& comm, nccl::Stream first, nccl::Stream other) {
    comm.join_after(first);
    comm.join_after(other);
  });
  group.passed.clear();
  return result;
}

/// The queued calls whose communicators were (`decided`), or were not, set up when they came.
nccl::Result perform_queued(Image& image, const Group& group, bool decided) {
  nccl::Result result = nccl::kSuccess;
  for (const Group::Queued& queued : group.queued) {
    if (queued.decided != decided) continue;
    Communicator* comm = globals().registry.find(queued.call.comm);
    if (comm == nullptr)
      keep_error(result, pass(image, queued.call, globals().statistics.elsewhere(), Pass::kNotInspected));
    else
      keep_error(result, perform(image, *comm, queued.call));
  }
  return result;
}

/// The calls of a group whose communicators were set up before it. They go ahead of the group's other work,
/// as NCCL too puts collectives before sends and receives: behind a send whose receiver waits for this
/// collective they would hang.
nccl::Result launch_decided(Image& image, const Group& group) {
  for_each_other_stream(group, [](Communicator& comm, nccl::Stream first, nccl::Stream other) {
    comm.join_before(first, other);
  });
  return perform_queued(image, group, true);
}

/// The calls of a group on communicators that were not set up: only now, outside the group, can the ranks
/// talk.
nccl::Result set_up_and_perform(Image& image, Group& group) {
  std::vector<nccl::Comm> comms;
  for (const auto& [call, decided] : group.queued)
    if (!decided && std::find(comms.begin(), comms.end(), call.comm) == comms.end())
      comms.push_back(call.comm);
  if (comms.empty()) return nccl::kSuccess;
  nccl::Result result = set_up(image, comms);
  if (result != nccl::kSuccess) return result;

  result = image.original.GroupStart();
  if (result != nccl::kSuccess) return result;
  group.depth = 1;
  keep_error(result, perform_queued(image, group, false));
  keep_error(result, end_of_nccl_group(image, group));
  return result;
}

}  // namespace

nccl::Result all_reduce(Image& image, const Call& call) {
  if (is_for_nccl(call)) return pass(image, call, globals().statistics.elsewhere(), Pass::kNotInspected);

  Group& group = group_of(image);
  Communicator* comm = globals().registry.find(call.comm);
  if (comm == nullptr) {
    if (!starts_set_up(call.facts))
      return pass(image, call, globals().statistics.elsewhere(), Pass::kNotInspected);
    if (group.depth > 0) {
      if (!is_valid(image, call.comm))
        return pass(image, call, globals().statistics.elsewhere(), Pass::kNotInspected);
      group.queued.push_back({call, false});
      return nccl::kSuccess;
    }
    const nccl::Comm comms[] = {call.comm};
    const nccl::Result result = set_up(image, comms);
    if (result != nccl::kSuccess) return result;
    comm = globals().registry.find(call.comm);
    if (comm == nullptr) return pass(image, call, globals().statistics.elsewhere(), Pass::kNotInspected);
  }
  if (group.depth == 0) return perform(image, *comm, call);

  const Decision decision = decide_for(*comm, call);
  if (!decision.served) return pass(image, *comm, call, decision.pass);
  group.queued.push_back({call, true});
  return nccl::kSuccess;
}

nccl::Result group_start(Image& image) {
  const nccl::Result result = image.original.GroupStart();
  if (result != nccl::kSuccess) return result;
  Group& group = group_of(image);
  if (group.depth++ == 0) group.dropped = false;
  return result;
}

nccl::Result group_end(Image& image) {
  Group& group = group_of(image);
  // An end without a start that was seen: the hooks came while a group was open, or NCCL is about to
  // complain.
  if (group.depth == 0) return image.original.GroupEnd();
  if (group.depth > 1) {
    --group.depth;
    return image.original.GroupEnd();
  }
  if (group.dropped) group.queued.clear();
  nccl::Result result = launch_decided(image, group);
  keep_error(result, end_of_nccl_group(image, group));
  if (!is_error(result)) keep_error(result, set_up_and_perform(image, group));
  group.queued.clear();
  return result;
}

nccl::Result group_simulate_end(Image& image, void* info) {
  Group& group = group_of(image);
  if (group.depth > 0 && --group.depth == 0) {
    group.queued.clear();
    group.passed.clear();
  }
  return image.original.GroupSimulateEnd(info);
}

}  // namespace onehop::calls
