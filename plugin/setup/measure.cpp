#include "plugin/setup/measure.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/measure/choose.hpp"
#include "plugin/pieces.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop {
namespace {

constexpr uint64_t kWaitNs = 4'000'000'000;  ///< longest wait of a kernel while measuring

/// One time: a method, or NCCL, at a size.
struct Trial {
  std::optional<Method> method;
  uint64_t bytes;
};

/// Medians of one rank, in the order of its trials.
struct TimesRecord {
  static constexpr size_t kMost = 62;
  uint32_t count = 0, reserved = 0;
  std::array<float, kMost> us{};
};
static_assert(sizeof(TimesRecord) == Member::kRecordBytes);

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

/// What one member needs while it is measured, and what it has found.
class Subject {
 public:
  Subject(Device& device, Member& member) : device_(device), member_(member), view_(member.staging->view()) {
    view_.budget_ns = kWaitNs;
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject() {
    const CurrentDevice scope(device_, member_.device_index);
    for (Graph graph : graphs_) device_.destroy_graph(graph);
    for (Event timer : timers_) device_.destroy_event(timer);
    if (buffer_ != nullptr) device_.release(buffer_);
  }

  Status open(uint32_t samples) {
    const CurrentDevice scope(device_, member_.device_index);
    const size_t bytes = std::max<uint64_t>(member_.plan.max_bytes(), sizeof(Pack));
    Result<void*> buffer = device_.allocate(2 * bytes);
    if (!buffer) return buffer.error();
    buffer_ = static_cast<unsigned char*>(*buffer);
    receive_ = buffer_ + bytes;
    while (timers_.size() < 2 * samples) {
      Result<Event> timer = device_.create_timer();
      if (!timer) return timer.error();
      timers_.push_back(*timer);
    }
    return device_.fill(buffer_, 0, bytes, member_.stream);
  }

  Member& member() { return member_; }
  Status begin() { return device_.begin_capture(member_.stream); }
  Status end() {
    Result<Graph> graph = device_.end_capture(member_.stream);
    if (!graph) return graph.error();
    graphs_.push_back(*graph);
    return {};
  }
  Status time(uint32_t sample, bool after) {
    return device_.record_timer(timers_[2 * sample + (after ? 1 : 0)], member_.stream);
  }
  /// The smallest operation: no rank leaves it before all have come.
  Status meet() { return run(member_.plan.candidates[0], sizeof(Pack)); }
  Status run(Method method, uint64_t bytes) {
    const Operation operation{buffer_, receive_, bytes / 2, Element::kBfloat16, Reduction::kSum, method};
    return launch_in_pieces(device_, view_, operation, member_.plan.piece(method, Element::kBfloat16),
                            member_.stream);
  }
  Status run_nccl(const nccl::Functions& functions, uint64_t bytes) {
    const nccl::Result result = functions.AllReduce(buffer_, receive_, bytes / 2, nccl::kBfloat16, nccl::kSum,
                                                    member_.handle, member_.stream);
    if (result == nccl::kSuccess || result == nccl::kInProgress) return {};
    return Error{"NCCL's AllReduce in a capture: error " + std::to_string(result)};
  }
  Status replay(size_t trial) { return device_.launch(graphs_[trial], member_.stream); }
  Result<double> median_us(uint32_t samples, uint32_t calls) {
    if (std::atomic_ref(view_.control->stop).load() != static_cast<uint32_t>(Stop::kNone))
      return Error{"a kernel waited too long for a peer"};
    std::vector<double> times;
    for (uint32_t s = 0; s < samples; ++s) {
      const Result<double> us = device_.elapsed_us(timers_[2 * s], timers_[2 * s + 1]);
      if (!us) return us.error();
      times.push_back(*us / calls);
    }
    return median(std::move(times));
  }
  void drop_graphs() {
    const CurrentDevice scope(device_, member_.device_index);
    for (Graph graph : graphs_) device_.destroy_graph(graph);
    graphs_.clear();
  }

  Status status;                ///< of this rank so far
  std::vector<Trial> trials;    ///< of the round that is under way
  std::vector<double> medians;  ///< of this rank
  Timings timings;

 private:
  Device& device_;
  Member& member_;
  CommView view_;
  unsigned char *buffer_ = nullptr, *receive_ = nullptr;
  std::vector<Event> timers_;
  std::vector<Graph> graphs_;  ///< by trial
};

class Measure {
 public:
  Measure(const nccl::Functions& functions, Device& device, Members& members)
      : nccl_(functions), device_(device), members_(members) {}

  nccl::Result run() {
    for (auto& m : members_) {
      m->pending = m->pending && m->plan.candidate_count > 0;
      if (m->pending) subjects_.push_back(std::make_unique<Subject>(device_, *m));
    }
    if (subjects_.empty()) return nccl::kSuccess;
    // The settings are the same on all ranks, and so is the largest size.
    const Effort effort =
        effort_for(globals().settings.measure, subjects_.front()->member().plan.max_bytes());
    for (auto& s : subjects_) s->status = s->open(effort.samples);

    for (auto& s : subjects_) first_trials(*s, effort);
    nccl::Result result = round(effort.first_samples, effort.calls);
    if (result != nccl::kSuccess) return result;
    for_pending([&](Subject& s) { second_trials(s, effort); });
    result = round(effort.samples, effort.calls);
    if (result != nccl::kSuccess) return result;
    for_pending([](Subject& s) {
      keep_complete_rows(s.timings);
      choose(s.timings, s.member().plan);
      s.member().timings = std::move(s.timings);
    });
    return nccl::kSuccess;
  }

 private:
  template <class Function>
  void for_pending(Function&& function) {
    for (auto& s : subjects_)
      if (s->member().pending) function(*s);
  }

  static void first_trials(Subject& s, const Effort& effort) {
    const Plan& plan = s.member().plan;
    s.timings.sizes = effort.sizes;
    const auto add_row = [&](std::optional<Method> method) {
      s.timings.rows.push_back(
          {method, std::vector<double>(effort.sizes.size(), std::numeric_limits<double>::quiet_NaN())});
    };
    add_row(std::nullopt);
    const size_t last = effort.sizes.size() - 1;
    for (uint32_t c = 0; c < plan.candidate_count; ++c) {
      add_row(plan.candidates[c]);
      for (const size_t i : {size_t{0}, last / 2, last})
        s.trials.push_back({plan.candidates[c], effort.sizes[i]});
    }
  }
  /// From the timings, which all ranks share.
  static void second_trials(Subject& s, const Effort& effort) {
    Timings few = s.timings;
    few.sizes.clear();
    for (Timings::Row& row : few.rows) {
      std::vector<double> us;
      for (const double value : row.us)
        if (!std::isnan(value)) us.push_back(value);
      row.us = std::move(us);
      few.sizes.resize(std::max(few.sizes.size(), row.us.size()));
    }
    s.trials.clear();
    for (const uint64_t bytes : effort.sizes) s.trials.push_back({std::nullopt, bytes});
    for (const Method method : leaders(few, effort.leaders))
      for (const uint64_t bytes : effort.sizes) s.trials.push_back({method, bytes});
  }
  static void keep_complete_rows(Timings& timings) {
    std::erase_if(timings.rows, [](const Timings::Row& row) {
      return std::any_of(row.us.begin(), row.us.end(), [](double us) { return std::isnan(us); });
    });
  }

  /// All trials of every pending member, in lockstep: several ranks of a communicator may live in this
  /// process.
  nccl::Result round(uint32_t samples, uint32_t calls) {
    size_t most = 0;
    for_pending([&](Subject& s) { most = std::max(most, s.trials.size()); });
    for (size_t t = 0; t < most; ++t) capture(t, samples, calls);
    log::debug("measuring: {} graphs captured", most);
    meet_in_process(members_);
    // A rank without its graphs would let the others wait.
    nccl::Result result = agree("could not capture the measurement");
    if (result != nccl::kSuccess) return result;
    for (size_t t = 0; t < most; ++t) {
      for_trial(t, [&](Subject& s) { return s.replay(t); });
      log::debug("measuring: replay {}", t);
      result = finish_exchange(nccl_, members_);
      if (result != nccl::kSuccess) return result;
      for_trial(t, [&](Subject& s) -> Status {
        const Result<double> us = s.median_us(samples, calls);
        s.medians.push_back(us ? *us : 0);
        return us ? Status{} : Status{us.error()};
      });
    }
    return share_times();
  }

  template <class Step>
  void for_trial(size_t t, Step&& step) {
    for_pending([&](Subject& s) {
      if (t >= s.trials.size() || !s.status) return;
      const CurrentDevice scope(device_, s.member().device_index);
      s.status = step(s);
    });
  }

  void capture(size_t t, uint32_t samples, uint32_t calls) {
    for_trial(t, [](Subject& s) { return s.begin(); });
    for (uint32_t sample = 0; sample < samples; ++sample) {
      for_trial(t, [&](Subject& s) { return s.meet(); });
      for_trial(t, [&](Subject& s) { return s.time(sample, false); });
      for (uint32_t call = 0; call < calls; ++call) {
        bool nccl = false;
        for_trial(t, [&](Subject& s) {
          nccl = nccl || !s.trials[t].method;
          return s.trials[t].method ? s.run(*s.trials[t].method, s.trials[t].bytes) : Status{};
        });
        if (!nccl) continue;
        (void)nccl_.GroupStart();
        for_trial(t, [&](Subject& s) {
          return s.trials[t].method ? Status{} : s.run_nccl(nccl_, s.trials[t].bytes);
        });
        const nccl::Result ended = nccl_.GroupEnd();
        for_trial(t, [&](Subject& s) -> Status {
          if (s.trials[t].method) return {};
          if ((ended == nccl::kSuccess || ended == nccl::kInProgress) && usable(nccl_, s.member().handle))
            return {};
          return Error{"NCCL's AllReduce in a capture: error " + std::to_string(ended)};
        });
      }
      for_trial(t, [&](Subject& s) { return s.time(sample, true); });
    }
    for_trial(t, [](Subject& s) { return s.end(); });
  }

  /// Members of which some rank failed are measured no further, on any rank.
  nccl::Result agree(const char* what) {
    const nccl::Result result = exchange(nccl_, members_, [this](Member& m) {
      for (auto& s : subjects_)
        if (&s->member() == &m) return Progress::of(s->status);
      return Progress::of(Error{"not measured"});
    });
    if (result != nccl::kSuccess) return result;
    for_pending([&](Subject& s) {
      Member& m = s.member();
      m.not_measured = first_failure(m.all_records<Progress>(), what);
      m.pending = !m.not_measured;
    });
    return nccl::kSuccess;
  }

  nccl::Result share_times() {
    nccl::Result result = exchange(nccl_, members_, [this](Member& m) {
      TimesRecord record;
      for (auto& s : subjects_) {
        if (&s->member() != &m) continue;
        for (const double us : s->medians)
          if (record.count < record.kMost) record.us[record.count++] = static_cast<float>(us);
      }
      return record;
    });
    if (result != nccl::kSuccess) return result;
    for_pending([](Subject& s) {
      const auto table = s.member().all_records<TimesRecord>();
      for (size_t t = 0; t < s.trials.size() && t < TimesRecord::kMost; ++t) {
        float slowest = 0;
        for (const TimesRecord& record : table) slowest = std::max(slowest, record.us[t]);
        note(s.timings, s.trials[t], slowest);
      }
      s.medians.clear();
      s.drop_graphs();
    });
    return agree("could not measure");
  }

  /// Where a trial was measured before, its time is the mean of the two.
  static void note(Timings& timings, const Trial& trial, double us) {
    const auto at =
        std::find(timings.sizes.begin(), timings.sizes.end(), trial.bytes) - timings.sizes.begin();
    for (Timings::Row& row : timings.rows) {
      if (row.method != trial.method) continue;
      double& time = row.us[static_cast<size_t>(at)];
      time = std::isnan(time) ? us : (time + us) / 2;
    }
  }

  const nccl::Functions& nccl_;
  Device& device_;
  Members& members_;
  std::vector<std::unique_ptr<Subject>> subjects_;
};

}  // namespace

Effort effort_for(MeasureChoice choice, uint64_t max_bytes) {
  Effort effort;
  uint64_t factor = 4;
  if (choice == MeasureChoice::kFull) {
    effort.first_samples = 7;
    effort.samples = 15;
    effort.calls = 10;
    factor = 2;
  }
  for (uint64_t bytes = 1 << 10; bytes < max_bytes; bytes *= factor) effort.sizes.push_back(bytes);
  effort.sizes.push_back(max_bytes / sizeof(Pack) * sizeof(Pack) +
                         (max_bytes % sizeof(Pack) != 0 ? sizeof(Pack) : 0));
  // What one exchange can carry.
  while (effort.sizes.size() * (effort.leaders + 1) > TimesRecord::kMost) --effort.leaders;
  return effort;
}

nccl::Result measure(const nccl::Functions& functions, Device& device, Members& members) {
  return Measure(functions, device, members).run();
}

}  // namespace onehop
