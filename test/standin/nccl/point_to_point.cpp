// Sends and receives: all of a group make progress together, each pair of ranks through rings of its own.

#include <algorithm>

#include "test/standin/nccl/elements.hpp"
#include "test/standin/nccl/operation.hpp"

namespace onehop::standin {
namespace {

struct Transfer {
  bool sends = false;
  int peer = 0;
  unsigned char* buffer = nullptr;
  size_t left = 0;
};

/// Copies to or from the part of the ring that begins at `position`, and advances the transfer.
size_t copy(Transfer& transfer, unsigned char* ring, uint64_t position, size_t available) {
  const size_t start = position % kPipeBytes;
  const size_t bytes = std::min({transfer.left, available, kPipeBytes - start});
  if (transfer.sends) {
    std::memcpy(ring + start, transfer.buffer, bytes);
  } else {
    std::memcpy(transfer.buffer, ring + start, bytes);
  }
  transfer.buffer += bytes;
  transfer.left -= bytes;
  return bytes;
}

bool advance(Communicator& communicator, Transfer& transfer) {
  Pipe(&pipes)[kMaxCommRanks][kMaxCommRanks] = communicator.segment()->pipe;
  Pipe& pipe =
      transfer.sends ? pipes[communicator.rank][transfer.peer] : pipes[transfer.peer][communicator.rank];
  const uint64_t written = pipe.written.load(std::memory_order_acquire);
  const uint64_t read = pipe.read.load(std::memory_order_acquire);
  std::atomic<uint64_t>& mine = transfer.sends ? pipe.written : pipe.read;
  const uint64_t position = transfer.sends ? written : read;
  const size_t available = transfer.sends ? kPipeBytes - (written - read) : written - read;
  const size_t bytes = copy(transfer, pipe.ring, position, available);
  mine.store(position + bytes, std::memory_order_release);
  return bytes > 0;
}

}  // namespace

void run_point_to_point(const std::vector<Operation>& operations) {
  Communicator& communicator = *operations.front().communicator;
  std::vector<Transfer> transfers;
  for (const Operation& operation : operations) {
    const bool sends = operation.kind == Kind::kSend;
    void* buffer = sends ? const_cast<void*>(operation.send) : operation.receive;
    transfers.push_back({sends, operation.root, static_cast<unsigned char*>(buffer),
                         operation.count * element_size(operation.type)});
  }
  Backoff backoff;
  while (!transfers.empty() && !communicator.stop.load(std::memory_order_acquire)) {
    bool any = false;
    for (size_t i = 0; i < transfers.size(); ++i) {
      // Between two ranks, one after the other.
      const bool first = std::none_of(transfers.begin(), transfers.begin() + i, [&](const Transfer& earlier) {
        return earlier.sends == transfers[i].sends && earlier.peer == transfers[i].peer;
      });
      any = (first && advance(communicator, transfers[i])) || any;
    }
    transfers.erase(
        std::remove_if(transfers.begin(), transfers.end(), [](const Transfer& t) { return t.left == 0; }),
        transfers.end());
    if (!any) backoff.pause();
  }
}

}  // namespace onehop::standin
