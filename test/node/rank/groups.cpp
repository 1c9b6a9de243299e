// ncclGroupStart and ncclGroupEnd in every nesting, one process per rank.
#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

/// `calls` sums and whether they came out right. Each has buffers of its own: NCCL promises no order within a
/// group.
class Sums {
 public:
  Sums(const Rank& self, size_t calls, size_t count = 100) : ranks_(static_cast<uint32_t>(self.ranks)) {
    for (size_t i = 0; i < calls; ++i) {
      from_.push_back(std::make_unique<Words>(count, static_cast<uint32_t>(i + 1)));
      to_.push_back(std::make_unique<Words>(count, kUntouched));
    }
  }
  void call(size_t i, ncclComm_t comm, cudaStream_t stream) const {
    MUST(sum(*from_[i], *to_[i], comm, stream));
  }
  void check() const {
    for (size_t i = 0; i < to_.size(); ++i)
      must(to_[i]->holds(ranks_ * static_cast<uint32_t>(i + 1)), "wrong result of call " + std::to_string(i));
  }
  bool untouched() const {
    for (const auto& to : to_)
      if (!to->holds(kUntouched)) return false;
    return true;
  }

 private:
  static constexpr uint32_t kUntouched = 0xA5A5A5A5;
  uint32_t ranks_;
  std::vector<std::unique_ptr<Words>> from_, to_;
};

void start(int depth) {
  for (int i = 0; i < depth; ++i) MUST(ncclGroupStart());
}
void end(int depth) {
  for (int i = 0; i < depth; ++i) MUST(ncclGroupEnd());
}

}  // namespace

/// First calls of two communicators in one group, then every nesting. The calls are launched by the outermost
/// end, not before.
SCENARIO(groups) {
  const ncclComm_t first = self.join("first"), second = self.join("second");
  {
    const Stream stream, other;
    for (int depth = 1; depth <= 3; ++depth) {
      const Sums sums(self, 5);
      const Counted counted;
      start(depth);
      sums.call(0, first, stream);
      sums.call(1, second, other);
      start(2);
      sums.call(2, first, stream);
      end(1);
      start(1);  // empty
      end(1);
      sums.call(3, first, stream);
      end(1);
      end(depth - 1);
      sums.call(4, second, other);
      MUST(counted.taken() + counted.passed() == 0);
      end(1);
      MUST(!Loaded().found() || counted.taken() == 5);
      stream.synchronize();
      other.synchronize();
      sums.check();
      self.expect("taken", 5);
    }
    start(2);  // empty, on communicators that are set up
    end(2);
    const Sums after(self, 1);
    after.call(0, first, stream);
    stream.synchronize();
    after.check();
    self.expect("taken");
  }
  MUST(ncclCommDestroy(second));
  MUST(ncclCommDestroy(first));
}

/// Groups with taken calls, passed calls, sends and receives of one communicator; the first of them sets it
/// up.
SCENARIO(mixed_groups) {
  const ncclComm_t comm = self.join();
  const int next = (self.rank + 1) % self.ranks, previous = (self.rank + self.ranks - 1) % self.ranks;
  {
    const Stream stream;
    const ncclRedOp_t made = made_sum(comm);
    for (int round = 0; round < 3; ++round) {
      const Sums sums(self, 2), large(self, 1, 20000);
      const Words ones(50, 1), total(50, 0), sent(10, static_cast<uint32_t>(self.rank)), received(10, 99);
      start(1);
      MUST(ncclSend(sent.data(), 10, ncclUint32, next, comm, stream));
      sums.call(0, comm, stream);
      large.call(0, comm, stream);
      start(1);
      MUST(ncclAllReduce(ones.data(), total.data(), 50, ncclUint32, made, comm, stream));
      end(1);
      MUST(ncclRecv(received.data(), 10, ncclUint32, previous, comm, stream));
      sums.call(1, comm, stream);
      end(1);
      stream.synchronize();
      sums.check();
      large.check();
      must(total.holds(static_cast<uint32_t>(self.ranks)) && received.holds(static_cast<uint32_t>(previous)),
           "wrong result of a passed call");
      self.expect("taken", 2);
      self.expect("size");
      self.expect("operator");
    }
    // Only passed calls, and a group that begins with a passed call on a communicator that is not set up.
    const ncclComm_t fresh = self.join("fresh");
    const Sums large(self, 1, 20000), sums(self, 1);
    start(1);
    large.call(0, fresh, stream);
    sums.call(0, fresh, stream);
    end(1);
    stream.synchronize();
    large.check();
    sums.check();
    self.expect("size");
    self.expect("taken");
    MUST(ncclCommDestroy(fresh));
  }
  MUST(ncclCommDestroy(comm));
}

/// The ranks' groups differ, as NCCL allows: a receive may stand in a later group than the all-reduce whose
/// group the send is in. Collectives go first, or this hangs.
SCENARIO(uneven_groups) {
  constexpr size_t kLong = 1 << 20;  // a short message leaves before its receiver comes
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    for (int round = 0; round < 4; ++round) {
      const Sums sums(self, 1);
      const Words data(kLong, self.rank == 0 ? 42 : 0);
      if (round == 0) {  // set-up, at the end of a group on one rank only
        if (self.rank == 0) start(2);
        sums.call(0, comm, stream);
        if (self.rank == 0) end(2);
      } else if (self.rank == 0) {
        start(1);
        if (round != 2) sums.call(0, comm, stream);
        MUST(ncclSend(data.data(), kLong, ncclUint32, 1, comm, stream));
        if (round == 2) sums.call(0, comm, stream);
        end(1);
      } else {
        if (round != 3) start(1);
        sums.call(0, comm, stream);
        if (round != 3) end(1);
        if (self.rank == 1) MUST(ncclRecv(data.data(), kLong, ncclUint32, 0, comm, stream));
      }
      stream.synchronize();
      sums.check();
      must(round == 0 || self.rank > 1 || data.holds(42), "the message did not come");
      self.expect("taken");
    }
  }
  MUST(ncclCommDestroy(comm));
}

/// ncclGroupSimulateEnd launches nothing, whatever was in the group; an inner one leaves the outer group as
/// it is.
SCENARIO(simulate) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    // First on a communicator that is not set up, then on one that is.
    for (int round = 0; round < 2; ++round) {
      const Sums dropped(self, 2), kept(self, 1);
      const Counted counted;
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      start(1);
      dropped.call(0, comm, stream);
      start(1);
      dropped.call(1, comm, stream);
      end(1);
      MUST(ncclGroupSimulateEnd(&info));
      stream.synchronize();
      must(dropped.untouched() && counted.taken() + counted.passed() == 0, "a simulated call was launched");
      // The depth is right again: a call is a group of its own, and a group is launched at its end.
      kept.call(0, comm, stream);
      stream.synchronize();
      kept.check();
      MUST(!Loaded().found() || counted.taken() == 1);
      self.expect("taken");

      const Sums inner(self, 1);
      start(2);
      inner.call(0, comm, stream);
      MUST(ncclGroupSimulateEnd(&info));
      must(inner.untouched(), "the inner end of a group launched");
      end(1);
      stream.synchronize();
      inner.check();
      self.expect("taken");
    }
  }
  MUST(ncclCommDestroy(comm));
}

/// An end without a start is an error, and leaves the depth at zero: later groups launch at their own end.
SCENARIO(unbalanced_end) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    MUST(ncclGroupEnd() == ncclInvalidUsage);
    for (int round = 0; round < 2; ++round) {
      const Sums sums(self, 2);
      start(1);
      sums.call(0, comm, stream);
      must(sums.untouched(), "launched inside the group");
      end(1);
      MUST(ncclGroupEnd() == ncclInvalidUsage);
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      MUST(ncclGroupSimulateEnd(&info) == ncclInvalidUsage);
      sums.call(1, comm, stream);
      stream.synchronize();
      sums.check();
      self.expect("taken", 2);
    }
  }
  MUST(ncclCommDestroy(comm));
}

/// NCCL drops a group in which a call had a wrong argument; so must its taken calls be, or a job that mends
/// the call and tries again would sum twice.
SCENARIO(dropped_group) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    const Sums first(self, 1), dropped(self, 1), after(self, 1);
    first.call(0, comm, stream);
    Words words(4, 1);
    start(1);
    dropped.call(0, comm, stream);
    MUST(ncclAllReduce(words.data(), words.data(), 4, static_cast<ncclDataType_t>(99), ncclSum, comm,
                       stream) == ncclInvalidArgument);
    MUST(ncclGroupEnd() == ncclInvalidArgument);
    start(1);
    after.call(0, comm, stream);
    end(1);
    stream.synchronize();
    first.check();
    must(dropped.untouched(), "a call of a dropped group was launched");
    after.check();
    self.expect("taken", 2);
    self.expect("not_inspected");
  }
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::node
