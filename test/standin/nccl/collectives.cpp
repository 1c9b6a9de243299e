// Collectives over the shared chunks. All of them are a row of steps in which some ranks publish and some
// read what they need.

#include <algorithm>

#include "test/standin/cudart/places.hpp"
#include "test/standin/nccl/elements.hpp"
#include "test/standin/nccl/log.hpp"
#include "test/standin/nccl/operation.hpp"

namespace onehop::standin {
namespace {

/// The same on all ranks of an operation; zero never.
uint64_t signature_of(const Operation& operation) {
  uint64_t hash = 1469598103934665603u;
  for (const uint64_t part : {static_cast<uint64_t>(operation.kind), static_cast<uint64_t>(operation.count),
                              static_cast<uint64_t>(operation.type), static_cast<uint64_t>(operation.op),
                              static_cast<uint64_t>(operation.root)}) {
    hash = (hash ^ part) * 1099511628211u;
  }
  return hash | 1;
}

class Collective {
 public:
  explicit Collective(const Operation& operation)
      : operation_(operation),
        communicator_(*operation.communicator),
        segment_(*communicator_.segment()),
        size_(element_size(operation.type)),
        signature_(signature_of(operation)) {
    if (operation.op >= ncclNumOps) {
      const UserOp& user = operation.user_op;
      std::memcpy(scalar_, user.device_scalar != nullptr ? user.device_scalar : user.scalar, size_);
      scaled_ = true;
    } else if (is_reduction(operation.kind) && operation.op == ncclAvg && is_floating(operation.type)) {
      make_inverse(operation.type, communicator_.ranks, scalar_);
      scaled_ = true;
    }
  }

  void run() {
    const size_t per_step = kChunkBytes / size_;
    for (int block = 0; block < blocks(); ++block) {
      for (size_t start = 0; start < operation_.count; start += per_step) {
        if (!step(block, start, std::min(per_step, operation_.count - start))) return;
      }
    }
  }

 private:
  /// Parts of the send buffer that have their turns one after another, each for one rank.
  int blocks() const {
    const Kind kind = operation_.kind;
    const bool by_rank = kind == Kind::kReduceScatter || kind == Kind::kAllToAll || kind == Kind::kScatter;
    return by_rank ? communicator_.ranks : 1;
  }

  bool publishes() const {
    const bool from_root = operation_.kind == Kind::kBroadcast || operation_.kind == Kind::kScatter;
    return !from_root || communicator_.rank == operation_.root;
  }

  bool step(int block, size_t start, size_t count) {
    const int me = communicator_.rank;
    const uint64_t number = ++communicator_.step;
    const int turn = number % 2;
    if (!everyone_at(&Stage::consumed, number > 2 ? number - 2 : 0)) return false;
    if (publishes()) {
      const size_t offset = (block * operation_.count + start) * size_;
      const void* from = static_cast<const unsigned char*>(operation_.send) + offset;
      if (scaled_) {
        scale(operation_.type, segment_.chunk[me][turn], from, scalar_, count);
      } else {
        std::memcpy(segment_.chunk[me][turn], from, count * size_);
      }
    }
    segment_.stage[me].signature[turn] = signature_;
    segment_.stage[me].published.store(number, std::memory_order_release);
    come_to("published");
    if (!everyone_at(&Stage::published, number) || !agree(turn)) return false;
    consume(block, start, count, turn);
    segment_.stage[me].consumed.store(number, std::memory_order_release);
    return true;
  }

  bool everyone_at(std::atomic<uint64_t> Stage::*counter, uint64_t value) const {
    return wait_until(communicator_.stop, [&] {
      for (int rank = 0; rank < communicator_.ranks; ++rank) {
        if ((segment_.stage[rank].*counter).load(std::memory_order_acquire) < value) return false;
      }
      return true;
    });
  }

  /// NCCL would hang or mix up data where ranks disagree on what they do; here it is an error that a test
  /// sees.
  bool agree(int turn) {
    for (int rank = 0; rank < communicator_.ranks; ++rank) {
      if (segment_.stage[rank].signature[turn] == signature_) continue;
      warn("rank %d and rank %d do not run the same collective", communicator_.rank, rank);
      communicator_.state = ncclInternalError;
      communicator_.stop = true;
      return false;
    }
    return true;
  }

  void consume(int block, size_t start, size_t count, int turn) {
    const int me = communicator_.rank;
    const int ranks = communicator_.ranks;
    const unsigned char* chunks[kMaxCommRanks];
    for (int rank = 0; rank < ranks; ++rank) chunks[rank] = segment_.chunk[rank][turn];
    // Where a chunk of a rank's part goes, for the kinds that receive one part from each rank.
    const auto part = [&](int rank) { return to((rank * operation_.count + start) * size_); };
    switch (operation_.kind) {
      case Kind::kAllReduce:
        return sum(chunks, start, count);
      case Kind::kReduce:
        if (me == operation_.root) sum(chunks, start, count);
        return;
      case Kind::kReduceScatter:
        if (me == block) sum(chunks, start, count);
        return;
      case Kind::kBroadcast:
        std::memcpy(to(start * size_), chunks[operation_.root], count * size_);
        return;
      case Kind::kScatter:
        if (me == block) std::memcpy(to(start * size_), chunks[operation_.root], count * size_);
        return;
      case Kind::kGather:
        if (me != operation_.root) return;
        break;
      case Kind::kAllToAll:
        if (me != block) return;
        break;
      default:
        break;
    }
    for (int rank = 0; rank < ranks; ++rank) std::memcpy(part(rank), chunks[rank], count * size_);
  }

  void sum(const unsigned char* const* chunks, size_t start, size_t count) {
    reduce(operation_.type, operation_.op, to(start * size_), chunks, communicator_.ranks, count);
  }

  unsigned char* to(size_t offset) const { return static_cast<unsigned char*>(operation_.receive) + offset; }

  const Operation& operation_;
  Communicator& communicator_;
  Segment& segment_;
  const size_t size_;
  const uint64_t signature_;
  unsigned char scalar_[8] = {};  ///< what the input is multiplied with
  bool scaled_ = false;
};

}  // namespace

void run_collective(const Operation& operation) {
  Collective(operation).run();
}

}  // namespace onehop::standin
