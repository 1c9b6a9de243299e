// Calls with bad arguments. Prints every return code; the test compares with a run without onehop.
#include <cstdio>

#include "test/node/rank/device.hpp"

namespace onehop::node {
namespace {

void print(const char* what, ncclResult_t result) {
  std::printf("%s: %d\n", what, static_cast<int>(result));
}

/// Every bad call, each by itself and in a group.
void try_all(ncclComm_t comm, cudaStream_t stream) {
  const Words data(4, 1);
  const auto bad_type = static_cast<ncclDataType_t>(99), negative_type = static_cast<ncclDataType_t>(-1);
  const auto bad_op = static_cast<ncclRedOp_t>(77), negative_op = static_cast<ncclRedOp_t>(-5);
  const struct {
    const char* name;
    void* buffer;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    ncclComm_t comm;
  } calls[] = {
      {"no communicator", data.data(), 4, ncclUint32, ncclSum, nullptr},
      {"type 99", data.data(), 4, bad_type, ncclSum, comm},
      {"type -1", data.data(), 4, negative_type, ncclSum, comm},
      {"operator 77", data.data(), 4, ncclUint32, bad_op, comm},
      {"operator -5", data.data(), 4, ncclUint32, negative_op, comm},
      {"count 0", data.data(), 0, ncclUint32, ncclSum, comm},
      {"count 0 and type 99", data.data(), 0, bad_type, ncclSum, comm},
      {"count 0 and no buffers", nullptr, 0, ncclUint32, ncclSum, comm},
  };
  for (const auto& call : calls) {
    print(call.name,
          ncclAllReduce(call.buffer, call.buffer, call.count, call.type, call.op, call.comm, stream));
    MUST(ncclGroupStart());
    print("  in a group",
          ncclAllReduce(call.buffer, call.buffer, call.count, call.type, call.op, call.comm, stream));
    print("  its end", ncclGroupEnd());
    ncclResult_t state = ncclInProgress;
    MUST(ncclCommGetAsyncError(comm, &state));
    print("  the communicator", state);
  }
  MUST(cudaStreamSynchronize(stream));
  must(data.holds(1), "a bad call wrote");
}

}  // namespace

SCENARIO(arguments) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    // An operator that does not exist starts set-up all the same, on every rank alike.
    try_all(comm, stream);
    Words data(4, 1);
    print("a good call", sum(data, data, comm, stream));
    stream.synchronize();
    must(data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum");
    try_all(comm, stream);
    print("no communicator to destroy", ncclCommDestroy(nullptr));
    print("no communicator to ask", ncclCommGetAsyncError(nullptr, nullptr));
    print("no place for the answer", ncclCommGetAsyncError(comm, nullptr));
    print("no communicator to finalize", ncclCommFinalize(nullptr));
    print("no communicator to revoke", ncclCommRevoke(nullptr, 0));
  }
  MUST(ncclCommDestroy(comm));
  print("a communicator that is gone", ncclCommDestroy(comm));
  // Pointers to what is no communicator: one that was, and memory that never was.
  alignas(64) static unsigned char never[4096] = {};
  const Stream stream;
  const Words data(4, 1);
  for (const ncclComm_t wrong : {comm, reinterpret_cast<ncclComm_t>(never)}) {
    print("a call", sum(data, data, wrong, stream));
    MUST(ncclGroupStart());
    print("  in a group", sum(data, data, wrong, stream));
    print("  its end", ncclGroupEnd());
    ncclResult_t state = ncclSuccess;
    print("  its error", ncclCommGetAsyncError(wrong, &state));
    print("  to finalize", ncclCommFinalize(wrong));
    print("  to abort", ncclCommAbort(wrong));
    print("  to revoke", ncclCommRevoke(wrong, NCCL_REVOKE_DEFAULT));
  }
  stream.synchronize();
  must(data.holds(1), "a bad call wrote");
}

}  // namespace onehop::node
