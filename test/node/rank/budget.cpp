// Fifty communicators: the staging memory of a process has a limit.
#include <cstring>

#include "test/node/rank/device.hpp"
#include "test/node/rank/loaded.hpp"

namespace onehop::node {
namespace {

/// A communicator that has been used, and whether it is on.
bool use(const Rank& self, ncclComm_t comm, cudaStream_t stream) {
  const Words data(64, 1);
  MUST(sum(data, data, comm, stream));
  MUST(cudaStreamSynchronize(stream));
  must(data.holds(static_cast<uint32_t>(self.ranks)), "wrong sum");
  const onehopCommStatus status = Loaded().status(comm);
  must(status.state == onehopOn ||
           std::strstr(status.reason, "staging memory for other communicators") != nullptr,
       std::string("off because ") + status.reason);
  return status.state == onehopOn;
}

}  // namespace

/// Those beyond the limit are off, and say why. When some have gone others take their place.
SCENARIO(fifty_communicators) {
  const ncclComm_t parent = self.join();
  const Stream stream;
  std::vector<ncclComm_t> comms;
  const auto add = [&] {
    ncclComm_t comm = nullptr;
    MUST(ncclCommSplit(parent, 0, self.rank, &comm, nullptr));
    comms.push_back(comm);
    return use(self, comm, stream);
  };
  size_t fit = 0;  // the first so many are on
  for (size_t i = 0; i < 50; ++i) {
    const bool on = add();
    must(!on || fit == i, "a communicator is on behind one that is not");
    fit += on;
    self.expect(on ? "taken" : "declined");
  }
  for (size_t i = 0; i < 50; ++i) {
    must(use(self, comms[i], stream) == (i < fit), "a communicator has changed");
    self.expect(i < fit ? "taken" : "declined");
  }
  // Three that are on go, and three are on in their place; not a fourth.
  for (size_t i = 0; i < 3; ++i) MUST(ncclCommDestroy(comms[i]));
  for (size_t i = 0; i < 4; ++i) {
    must(add() == (i < 3), "after three have gone, the new one number " + std::to_string(i));
    self.expect(i < 3 ? "taken" : "declined");
  }
  for (size_t i = comms.size(); i-- > 3;) MUST(ncclCommDestroy(comms[i]));
  MUST(ncclCommDestroy(parent));
}

}  // namespace onehop::node
