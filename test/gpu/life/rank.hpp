// One rank of a case: how it meets the others, its communicators, and its calls. A case is a function that
// every rank runs, each in a process or a thread of its own.
#pragma once

#include <functional>
#include <map>
#include <random>

#include "test/gpu/life/device_work.hpp"
#include "test/gpu/life/shared.hpp"
#include "test/gpu/nccl_node.hpp"

namespace onehop::test {

inline void must(bool ok, const std::string& what) {
  if (!ok) fail(what);
}

class Rank {
 public:
  Rank(Shared& its_shared, int its_rank, int its_ranks, int its_process, std::string its_argument);

  const int rank, ranks, process;
  const std::string argument;
  Shared& shared;
  int device = 0;

  /// Waits for all ranks.
  void meet();
  /// A new communicator of all ranks.
  ncclComm_t join();
  /// The same number on all ranks.
  uint32_t common() { return common_(); }
  /// This rank's own.
  uint32_t own() { return own_(); }

  /// Says what this rank is doing, for a report of where a job hung.
  void step(const std::string& text);
  void note(const std::string& text) const { shared.note(text); }
  void figure(const char* name, double value) const { shared.figure(name, value); }

  /// Exits the process; the runner measures how long that takes.
  void leaves() const { shared.processes[process].leaves_at_us = now_us(); }
  /// Waits for the runner's SIGTERM.
  [[noreturn]] void wait_for_signal() const;

 private:
  uint32_t meetings_ = 0;
  int joined_ = 0;
  std::mt19937 common_{1}, own_;
};

/// Looks every millisecond until `done`, and ends the process after `seconds`. The seconds it took.
double wait_until(const std::string& what, double seconds, const std::function<bool()>& done);

/// A stream that is idle in time; an error counts as a failure.
double wait_idle(cudaStream_t stream, double seconds, const std::string& what = "a stream to become idle");

ncclResult_t async_error(ncclComm_t comm);

/// ncclAllReduce, which must return `wanted` and leave no error, no other current device and no other capture
/// mode.
void all_reduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                cudaStream_t stream);

class Stream {
 public:
  Stream() { MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { MUST(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What `work` puts on the stream, as a graph. The ranks of one process meet before it is launched:
/// instantiating may wait for kernels of the whole process.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& work,
        cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal);
  Graph(const Graph&) = delete;
  ~Graph();
  void launch(cudaStream_t stream) const { MUST(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

/// One call, equal on all ranks but for what each rank may choose.
struct Call {
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  size_t count = 1;
  uint32_t seed = 0;
  bool random = false;
  bool in_place = false;  ///< of this rank
  size_t offset = 0;      ///< elements before the buffers, of this rank
  uint64_t delay_ns = 0;  ///< on the GPU, before the call, of this rank
};

/// Calls whose results are checked on the GPU. Everything is enqueued on the call's stream; calls of one
/// object use the same buffers, so they must be on one stream, or on streams that wait for each other.
class Checked {
 public:
  Checked(const Rank&, size_t most_bytes);
  Checked(uint32_t rank, size_t most_bytes);
  Checked(const Checked&) = delete;
  ~Checked();

  void all_reduce(const Call&, ncclComm_t comm, int ranks, cudaStream_t stream, Round round = nullptr);
  void all_gather(const Call&, ncclComm_t comm, int ranks, cudaStream_t stream);
  void broadcast(const Call&, int root, ncclComm_t comm, int ranks, cudaStream_t stream);
  void reduce_scatter(const Call&, ncclComm_t comm, int ranks, cudaStream_t stream);

  /// The parts of all_reduce(), for a group: all fills, then the group, then all checks.
  void before(const Call&, int ranks, cudaStream_t stream, Round round = nullptr);
  void between(const Call&, ncclComm_t comm, cudaStream_t stream);
  void behind(const Call&, int ranks, cudaStream_t stream, Round round = nullptr);

  /// Which rank the next calls are of.
  void set_rank(uint32_t rank) { rank_ = rank; }

  /// What the checks found so far; the streams must be idle.
  Tally tally() const;
  /// Ends the process if an element was wrong. The elements checked.
  unsigned long long verify(const std::string& what) const;
  void clear() const;

 private:
  Pattern pattern(const Call&, int ranks) const;
  Buffers buffers(const Call&, size_t sent, size_t received) const;

  uint32_t rank_;
  size_t most_bytes_;
  unsigned char *in_ = nullptr, *out_ = nullptr;
  Tally* tally_ = nullptr;
};

/// Makes every kernel of device_work known to the driver, which may have to wait for the GPU for that.
void load_device_work();

using CaseFunction = void (*)(Rank&);
std::map<std::string, CaseFunction>& cases();
struct CaseEntry {
  CaseEntry(const char* name, CaseFunction function) { cases()[name] = function; }
};
#define CASE(name)                                                         \
  static void name##_case(::onehop::test::Rank& self);                     \
  static const ::onehop::test::CaseEntry name##_entry{#name, name##_case}; \
  static void name##_case([[maybe_unused]] ::onehop::test::Rank& self)

}  // namespace onehop::test
