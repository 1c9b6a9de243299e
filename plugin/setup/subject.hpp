// One rank of this process while its communicator is measured: its graphs on the private stream, its timers
// and what it found.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plugin/measure/rounds.hpp"
#include "plugin/setup/exchange.hpp"

namespace onehop {

class Subject {
 public:
  Subject(Device& device, Member& member);
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject();

  /// Buffers for the plan's largest call.
  Status open();

  Member& member() { return member_; }
  /// The communicator with the deadline of measuring.
  CommView& view() { return view_; }

  Status begin() { return device_.begin_capture(member_.stream); }
  Status end();
  /// Captures a timer; they are numbered from 0, and used again after drop_graphs().
  Status time();
  /// An all-reduce of `bytes`, of zeros.
  Status run(const CommView& view, Method method, uint64_t bytes, size_t piece);
  Status run_nccl(const nccl::Functions& functions, uint64_t bytes);
  /// The smallest operation of all ranks: none leaves it before all have come.
  Status meet(const CommView& view);
  Status replay(size_t graph) { return device_.launch(graphs_[graph], member_.stream); }
  /// From timer `first` to the next, `count` times in a row; an Error too if a kernel gave up.
  Result<std::vector<double>> times_us(size_t first, size_t count) const;
  void drop_graphs();

  Status status;  ///< of this rank so far

 private:
  Device& device_;
  Member& member_;
  CommView view_;
  unsigned char *buffer_ = nullptr, *receive_ = nullptr;
  std::vector<Event> timers_;
  size_t next_timer_ = 0;
  std::vector<Graph> graphs_;
};

using Subjects = std::vector<std::unique_ptr<Subject>>;

template <class Function>
void for_pending(Subjects& subjects, Function&& function) {
  for (auto& s : subjects)
    if (s->member().pending) function(*s);
}

/// The step, of every pending subject that has not failed yet, with its device current.
void try_each(Device&, Subjects&, const std::function<Status(Subject&)>& step);

/// Members of which some rank failed are measured no further, on any rank: not_measured says why.
nccl::Result agree(const nccl::Functions&, Members&, Subjects&, const char* what);

}  // namespace onehop
