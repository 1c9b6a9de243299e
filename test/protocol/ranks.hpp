// Ranks as threads: every rank runs a script of operations on its own threads, and nothing but the protocol
// keeps ranks in step. Between two operations of one rank lies a kernel boundary: all its threads meet, its
// stores into its own memory are done. A hang ends as a failure that says where.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/protocol/buffers.hpp"
#include "test/protocol/dispatch.hpp"
#include "test/protocol/fabric.hpp"
#include "test/protocol/host_group.hpp"
#include "test/protocol/outcome.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {

struct RanksOptions {
  Layout layout{2, 32, 32};
  Islands islands;
  uint32_t threads = 4;  ///< of each rank
  Turn first = first_turn();
  std::chrono::milliseconds budget{20'000};    ///< after which a wait of the protocol is a timeout
  std::chrono::milliseconds deadline{60'000};  ///< after which the ranks are told to stop
  int fresh_shadow = 0xFF;                     ///< what each byte of the shadows holds at first
  uint32_t absent = 0;                         ///< bit r: rank r runs no operation
};

/// The turn of an operation whose epoch is `epoch`, where slots are counted as if there had been no wrap.
inline Turn turn_at(uint32_t epoch, uint32_t slots = kInboxSlots) {
  return Turn{epoch, epoch % slots, 0, 0};
}

template <Fabric F, class Protocol = Proven>
class Ranks {
 public:
  Ranks(F& fabric, const Script& script, const RanksOptions& options)
      : fabric_(fabric), script_(script), options_(options), count_(options.layout.ranks) {
    const Layout& layout = options.layout;
    staging_.resize(count_);
    for (auto& staging : staging_) {
      staging.reset(new (std::align_val_t{128}) unsigned char[layout.bytes()]);
      std::memset(staging.get(), 0xFF, layout.sentinel_bytes());
      std::memset(staging.get() + layout.sentinel_bytes(), 0, layout.bytes() - layout.sentinel_bytes());
    }
    for (uint32_t r = 0; r < count_; ++r) {
      ranks_.push_back(std::make_unique<Rank>(script, options.threads));
      Rank& rank = *ranks_.back();
      for (State& state : rank.state) state.turn = options.first;
      CommView& comm = rank.comm;
      comm.rank = r;
      comm.ranks = count_;
      comm.islands = options.islands;
      comm.layout = layout;
      comm.state = rank.state.data();
      rank.shadows.resize(layout.shadow_bytes() / sizeof(Pack));
      std::memset(rank.shadows.data(), options.fresh_shadow, layout.shadow_bytes());
      comm.shadows = rank.shadows.data();
      comm.in_host = r % 2 == 1;  // some look by peek()
      comm.control = &rank.control;
      comm.budget_ns = static_cast<uint64_t>(std::chrono::nanoseconds(options.budget).count());
      for (uint32_t peer = 0; peer < count_; ++peer) comm.staging(peer) = staging_[peer].get();
      fabric_.attach(comm);
    }
  }

  const CommView& comm(uint32_t rank) const { return ranks_[rank]->comm; }

  /// What the host does at ncclCommAbort. May be called while run() is under way.
  void stop(uint32_t rank, Stop why = Stop::kAbort) {
    uint32_t none = 0;
    std::atomic_ref<uint32_t>(ranks_[rank]->control.stop)
        .compare_exchange_strong(none, static_cast<uint32_t>(why));
  }

  Outcome run() {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < count_; ++r)
      for (uint32_t t = 0; t < options_.threads && !(options_.absent >> r & 1); ++t) {
        ++running_;
        threads.emplace_back([this, r, t] { live(r, t); });
      }
    watch();
    for (auto& thread : threads) thread.join();
    Outcome outcome;
    for (uint32_t r = 0; r < count_; ++r) {
      const Rank& rank = *ranks_[r];
      outcome.stops.push_back({HostMemory().stop(&ranks_[r]->control), rank.control.missing_rank});
      outcome.finished.push_back(static_cast<uint32_t>(rank.buffers.results().size()));
      for (const std::string& problem : rank.problems)
        outcome.problems.push_back("rank " + std::to_string(r) + ": " + problem);
    }
    std::vector<const Buffers*> buffers;
    for (const auto& rank : ranks_) buffers.push_back(&rank->buffers);
    compare_results(script_, buffers, outcome.problems);
    return outcome;
  }

 private:
  struct Rank {
    Rank(const Script& script, uint32_t threads) : state(threads), buffers(script), boundary(threads) {}

    std::vector<State> state;  ///< one; more for rules that keep a turn per block
    std::vector<Pack> shadows;
    Control control;
    CommView comm;
    Buffers buffers;
    std::barrier<> boundary;
    std::optional<Launch> launch;
    Operation operation;
    bool typed = false;
    std::atomic<uint32_t> next{0};  ///< the operation to be run next
    bool over = false;
    std::vector<std::string> problems;
  };

  /// A thread of a rank. Thread 0 also does the work of the kernel boundary, between two meetings.
  void live(uint32_t r, uint32_t t) {
    Rank& rank = *ranks_[r];
    typename F::Memory memory = fabric_.memory(r, t);
    while (true) {
      if (t == 0) prepare(r);
      rank.boundary.arrive_and_wait();
      if (rank.over) break;
      if (t < rank.launch->shape().total())
        Protocol::run(memory, HostGroup(*rank.launch, t), rank.comm, rank.operation, rank.typed);
      rank.boundary.arrive_and_wait();
      if (t == 0) finish(r);
    }
    --running_;
  }

  void prepare(uint32_t r) {
    Rank& rank = *ranks_[r];
    const uint32_t next = rank.next;
    if (rank.over || next == script_.size()) {
      rank.over = true;
      return;
    }
    const Part& part = script_[next].parts[r];
    rank.operation = rank.buffers.prepare(script_[next], part);
    rank.typed = part.typed;
    rank.launch.emplace(part.shape);
    fabric_.begin(r, next);
    if (part.delay_us) std::this_thread::sleep_for(std::chrono::microseconds(part.delay_us));
  }

  void finish(uint32_t r) {
    Rank& rank = *ranks_[r];
    const uint32_t operation = rank.next;
    const std::string unfinished = script_[operation].count > 0 ? fabric_.end(r, operation) : "";
    if (HostMemory().stop(&rank.control) != Stop::kNone) {
      rank.over = true;
      rank.problems.push_back(describe_stop(rank.comm, script_[operation], operation));
      return;
    }
    if (!unfinished.empty()) rank.problems.push_back("kernel has ended, but " + unfinished);
    rank.buffers.finish(script_[operation], script_[operation].parts[r], operation, rank.problems);
    rank.next = operation + 1;
  }

  /// Stops everyone once one rank has stopped, or at the deadline. Threads that do not even leave then cannot
  /// be joined: the process ends.
  void watch() {
    const auto start = std::chrono::steady_clock::now();
    while (running_ > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      bool stop_all = std::chrono::steady_clock::now() - start > options_.deadline;
      for (const auto& rank : ranks_) stop_all |= HostMemory().stop(&rank->control) == Stop::kTimeout;
      for (uint32_t r = 0; stop_all && r < count_; ++r) stop(r);
      if (std::chrono::steady_clock::now() - start < options_.deadline * 2) continue;
      for (uint32_t r = 0; r < count_; ++r)
        std::fprintf(stderr, "rank %u does not leave operation %u\n", r, ranks_[r]->next.load());
      std::_Exit(3);
    }
  }

  struct Free {
    void operator()(unsigned char* bytes) const { ::operator delete[](bytes, std::align_val_t{128}); }
  };

  F& fabric_;
  const Script& script_;
  RanksOptions options_;
  uint32_t count_;
  std::vector<std::unique_ptr<unsigned char[], Free>> staging_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<uint32_t> running_{0};
};

}  // namespace onehop::test
