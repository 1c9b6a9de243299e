// The operations of a communicator: their arguments are checked here, and the rest is left to the end of the
// group.

#include "test/standin/cudart/places.hpp"
#include "test/standin/nccl/api.hpp"
#include "test/standin/nccl/elements.hpp"
#include "test/standin/nccl/group.hpp"
#include "test/standin/nccl/log.hpp"

using namespace onehop::standin;

namespace {

ncclResult_t check_op(const Communicator& communicator, const Operation& operation) {
  if (!is_reduction(operation.kind)) return ncclSuccess;
  if (operation.op >= 0 && operation.op < ncclNumOps) return ncclSuccess;
  const size_t index = static_cast<size_t>(operation.op) - ncclNumOps;
  if (operation.op < 0 || index >= communicator.user_ops.size() || !communicator.user_ops[index].alive) {
    warn("invalid reduction operation %d", static_cast<int>(operation.op));
    return ncclInvalidArgument;
  }
  if (communicator.user_ops[index].type != operation.type) {
    warn("user redop type mismatch");
    return ncclInvalidArgument;
  }
  return ncclSuccess;
}

ncclResult_t check(const Communicator& communicator, const Operation& operation) {
  if (communicator.revoked) {
    warn("communicator was revoked");
    return ncclInvalidUsage;
  }
  if (const ncclResult_t error = check_ready(communicator)) return error;
  if (operation.root < 0 || operation.root >= communicator.ranks) {
    warn("invalid root or peer %d (root should be in the 0..%d range)", operation.root, communicator.ranks);
    return ncclInvalidArgument;
  }
  if (operation.type < 0 || operation.type >= ncclNumTypes) {
    warn("invalid type %d", static_cast<int>(operation.type));
    return ncclInvalidArgument;
  }
  return check_op(communicator, operation);
}

ncclResult_t call(ncclComm_t comm, Operation operation) {
  if (const ncclResult_t error = check_handle(comm)) return note_error(error);  // drops the group, as in NCCL
  come_to(name_of(operation.kind));
  operation.communicator = comm->communicator;
  start_group();
  const ncclResult_t error = note_error(check(*comm->communicator, operation));
  if (error == ncclSuccess && operation.count > 0) {
    if (operation.op >= ncclNumOps)
      operation.user_op = comm->communicator->user_ops[operation.op - ncclNumOps];
    add_operation(std::move(operation));
  }
  const ncclResult_t ended = end_group();
  return error != ncclSuccess ? error : ended;
}

/// The fields of an operation that every call has.
Operation make(Kind kind, cudaStream_t stream, const void* send, void* receive, size_t count,
               ncclDataType_t type) {
  Operation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.send = send;
  operation.receive = receive;
  operation.count = count;
  operation.type = type;
  return operation;
}

Operation with_op(Operation operation, ncclRedOp_t op) {
  operation.op = op;
  return operation;
}

Operation with_root(Operation operation, int root) {
  operation.root = root;
  return operation;
}

}  // namespace

STANDIN_API(ncclResult_t, ncclAllReduce, const void* send, void* receive, size_t count, ncclDataType_t type,
            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_op(make(Kind::kAllReduce, stream, send, receive, count, type), op));
}

STANDIN_API(ncclResult_t, ncclReduceScatter, const void* send, void* receive, size_t count,
            ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_op(make(Kind::kReduceScatter, stream, send, receive, count, type), op));
}

STANDIN_API(ncclResult_t, ncclReduce, const void* send, void* receive, size_t count, ncclDataType_t type,
            ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  const Operation operation = make(Kind::kReduce, stream, send, receive, count, type);
  return call(comm, with_root(with_op(operation, op), root));
}

STANDIN_API(ncclResult_t, ncclAllGather, const void* send, void* receive, size_t count, ncclDataType_t type,
            ncclComm_t comm, cudaStream_t stream) {
  return call(comm, make(Kind::kAllGather, stream, send, receive, count, type));
}

STANDIN_API(ncclResult_t, ncclBroadcast, const void* send, void* receive, size_t count, ncclDataType_t type,
            int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kBroadcast, stream, send, receive, count, type), root));
}

STANDIN_API(ncclResult_t, ncclBcast, void* buffer, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kBroadcast, stream, buffer, buffer, count, type), root));
}

STANDIN_API(ncclResult_t, ncclAlltoAll, const void* send, void* receive, size_t count, ncclDataType_t type,
            ncclComm_t comm, cudaStream_t stream) {
  return call(comm, make(Kind::kAllToAll, stream, send, receive, count, type));
}

STANDIN_API(ncclResult_t, ncclGather, const void* send, void* receive, size_t count, ncclDataType_t type,
            int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kGather, stream, send, receive, count, type), root));
}

STANDIN_API(ncclResult_t, ncclScatter, const void* send, void* receive, size_t count, ncclDataType_t type,
            int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kScatter, stream, send, receive, count, type), root));
}

STANDIN_API(ncclResult_t, ncclSend, const void* buffer, size_t count, ncclDataType_t type, int peer,
            ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kSend, stream, buffer, nullptr, count, type), peer));
}

STANDIN_API(ncclResult_t, ncclRecv, void* buffer, size_t count, ncclDataType_t type, int peer,
            ncclComm_t comm, cudaStream_t stream) {
  return call(comm, with_root(make(Kind::kReceive, stream, nullptr, buffer, count, type), peer));
}

STANDIN_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t type,
            ncclScalarResidence_t residence, ncclComm_t comm) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (op == nullptr || scalar == nullptr || type < 0 || type >= ncclNumTypes) return ncclInvalidArgument;
  UserOp made;
  made.alive = true;
  made.type = type;
  if (residence == ncclScalarHostImmediate) {
    std::memcpy(made.scalar, scalar, element_size(type));
  } else {
    made.device_scalar = scalar;
  }
  auto& all = comm->communicator->user_ops;
  *op = static_cast<ncclRedOp_t>(ncclNumOps + all.size());
  all.push_back(made);
  return ncclSuccess;
}

STANDIN_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  auto& all = comm->communicator->user_ops;
  if (op < ncclNumOps || static_cast<size_t>(op) - ncclNumOps >= all.size()) return ncclInvalidArgument;
  all[op - ncclNumOps].alive = false;
  return ncclSuccess;
}
