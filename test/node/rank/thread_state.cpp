// What a thread finds unchanged after every call, whatever onehop did in it.
#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

/// Another device than the communicator's, a capture mode of the thread's own, and an error that nobody has
/// asked for yet.
class ThreadState {
 public:
  explicit ThreadState(int device) : device_(device) {
    MUST(cudaSetDevice(device));
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    (void)cudaSetDevice(999);
    error_ = cudaPeekAtLastError();
    must(error_ != cudaSuccess, "there is no error to be kept");
  }
  void check(const char* call) const {
    int device = -1;
    MUST(cudaGetDevice(&device));
    must(device == device_, std::string("another device after ") + call);
    must(cudaPeekAtLastError() == error_, std::string("another last error after ") + call);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    must(mode == cudaStreamCaptureModeRelaxed, std::string("another capture mode after ") + call);
  }

 private:
  int device_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

/// Argument: what the calls are counted as.
SCENARIO(thread_state) {
  const ncclComm_t comm = self.join();
  const Stream stream;
  const Words data(64, 1);
  const ThreadState state(self.ranks);  // no rank's device
  const auto call = [&](const char* name, ncclResult_t result) {
    MUST(result);
    state.check(name);
  };
  call("the first call", sum(data, data, comm, stream));
  call("a later call", sum(data, data, comm, stream));
  call("ncclGroupStart", ncclGroupStart());
  call("a call in a group", sum(data, data, comm, stream));
  call("ncclGroupEnd", ncclGroupEnd());
  self.expect(self.argument, 3);
  ncclResult_t error = ncclSuccess;
  call("ncclCommGetAsyncError", ncclCommGetAsyncError(comm, &error));
  const ncclComm_t second = [&] {
    MUST(cudaSetDevice(self.rank));
    const ncclComm_t joined = self.join("second");
    MUST(cudaSetDevice(self.ranks));
    return joined;
  }();
  call("ncclGroupStart", ncclGroupStart());
  call("a first call in a group", sum(data, data, second, stream));
  call("its ncclGroupEnd", ncclGroupEnd());
  self.expect(self.argument);
  stream.synchronize();
  call("ncclCommFinalize", ncclCommFinalize(comm));
  call("ncclCommDestroy", ncclCommDestroy(comm));
  self.meet("done");
  call("ncclCommAbort", ncclCommAbort(second));
  (void)cudaGetLastError();
}

}  // namespace onehop::node
