// The ranks that live in one process of a side: they fill, call, capture, time and check.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tools/onehop/bench/case.hpp"
#include "tools/onehop/bench/gate.hpp"
#include "tools/onehop/bench/libraries.hpp"

namespace onehop::bench {

/// What a process of a side is told.
struct RanksPlan {
  int ranks = 0;             ///< of the communicator
  int first = 0;             ///< the first one here
  std::vector<int> devices;  ///< of those here, one after another
  bool group = false;        ///< one thread for all of them; else a thread for each
  size_t memory = 0;         ///< bytes for the buffers of the calls of a case, of one kind and rank
};

/// Microseconds per call, for each rank here, one for each sample.
struct Times {
  std::vector<std::vector<double>> us;
  std::vector<std::vector<double>> host_us;  ///< eager only: what the caller's thread spends in the call
};

class Ranks {
 public:
  /// Anything that goes wrong is told to `fail`, from any thread; it must not return.
  using Fail = std::function<void(const std::string&)>;
  Ranks(const Libraries& libraries, RanksPlan plan, Fail fail);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// The communicator, streams and buffers. Collective over all processes of the side.
  void open(const ncclUniqueId& id);
  /// A first small call, with which onehop sets itself up. Returns how long it took, in ms.
  double set_up();
  void close();

  /// Captures the case's graph if it has one, and runs it once with fresh contents. Returns the wrong
  /// elements.
  size_t prepare(const Case& what);
  /// The case once more to come back into step, then `samples` times.
  Times measure(size_t samples);
  /// Checks what the measured runs left behind, then a last run with fresh contents.
  size_t finish();

  ncclComm_t comm() const { return ranks_.front().comm; }

 private:
  struct Rank {
    int rank = 0, device = 0;
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t start = nullptr, stop = nullptr;
    unsigned char *send = nullptr, *receive = nullptr;
    cudaGraphExec_t graph = nullptr;
  };
  /// Ranks that one thread drives.
  using Lane = std::vector<Rank*>;

  void must(cudaError_t error, const char* what) const;
  void must(ncclResult_t result, const char* what) const;

  /// Each lane in a thread of its own, all at the same time.
  template <class Part>
  void in_lanes(Part&& part);
  void use(const Rank& rank) const { must(libraries_.cuda.SetDevice(rank.device), "cudaSetDevice"); }
  void synchronize(const Lane& lane) const;

  void fill(size_t turn);
  size_t count_wrong(size_t turn);
  void run_once();
  void call(const Lane& lane, size_t number) const;
  void capture(const Lane& lane);
  void replay(const Lane& lane);
  void drop_graphs();
  Times measure_graph(size_t samples);
  Times measure_eager(size_t samples);
  cudaStream_t replay_stream(const Rank& rank) const {
    return case_.mode == Mode::kGraphDefault ? nullptr : rank.stream;
  }

  const Libraries& libraries_;
  const RanksPlan plan_;
  const Fail fail_;
  std::vector<Rank> ranks_;
  std::vector<Lane> lanes_;
  Case case_;
  size_t turn_ = 0;  ///< of the contents that lie in the buffers
  Gate gate_;
  std::atomic<size_t> lanes_to_come_{0};  ///< before the gate opens
};

}  // namespace onehop::bench
