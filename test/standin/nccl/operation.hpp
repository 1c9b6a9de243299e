// One operation of a communicator, as the program asked for it.
#pragma once

#include "test/standin/nccl/communicator.hpp"

namespace onehop::standin {

enum class Kind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kReduce,
  kBroadcast,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kReceive
};

constexpr const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast",
                                    "AllToAll",  "Gather",    "Scatter",       "Send",   "Receive"};
  return kNames[static_cast<int>(kind)];
}
inline bool is_point_to_point(Kind kind) {
  return kind == Kind::kSend || kind == Kind::kReceive;
}
inline bool is_reduction(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

struct Operation {
  Kind kind = Kind::kAllReduce;
  CommunicatorRef communicator;
  cudaStream_t stream = nullptr;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  ///< as in the call: of the whole, or of each rank's part
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  UserOp user_op;  ///< of an `op` that the program made; copied at the call
  int root = 0;    ///< or the peer
};

/// Runs a collective on the calling thread: every rank does, in the same order.
void run_collective(const Operation& operation);
/// Runs the sends and receives of one group of one communicator, all at the same time.
void run_point_to_point(const std::vector<Operation>& operations);

}  // namespace onehop::standin
