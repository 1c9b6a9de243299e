#include "plugin/setup/measure.hpp"

#include <algorithm>
#include <array>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/measure/choose.hpp"
#include "plugin/measure/rounds.hpp"
#include "plugin/measure/times_record.hpp"
#include "plugin/setup/measure_pairs.hpp"
#include "plugin/setup/probe.hpp"
#include "plugin/setup/subject.hpp"

namespace onehop {
namespace {

static_assert(sizeof(TimesRecord) == Member::kRecordBytes);

/// A subject, the trials of the round that is under way, and what this rank found in them.
struct Measured {
  Subject& subject;
  std::vector<Trial> trials{};
  std::vector<Time> times{};
  Timings timings{};
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
    const MeasureChoice choice = globals().settings.measure;
    const Effort effort = effort_for(choice, subjects_.front()->member().plan.max_bytes());
    try_each(device_, subjects_, [](Subject& s) { return s.open(); });

    nccl::Result result = pairs(choice);
    if (result != nccl::kSuccess) return result;
    for_pending(subjects_, [&](Subject& s) {
      measured_.push_back({s});
      measured_.back().timings.sizes = effort.sizes;
      measured_.back().trials = first_trials(s.member().plan, effort);
    });
    result = round(effort, effort.first_samples);
    if (result != nccl::kSuccess) return result;
    for (Measured& m : measured_) m.trials = second_trials(m.timings, effort);
    result = round(effort, effort.samples);
    if (result != nccl::kSuccess) return result;
    for (Measured& m : measured_) {
      Member& member = m.subject.member();
      if (!member.pending) continue;
      keep_complete_rows(m.timings);
      choose(m.timings, member.plan);
      member.timings = std::move(m.timings);
    }
    return nccl::kSuccess;
  }

 private:
  /// Of those whose plan may hold islands that nobody has named; with ONEHOP_MEASURE=full of all, for the
  /// log.
  nccl::Result pairs(MeasureChoice choice) {
    std::vector<Member*> others;
    for_pending(subjects_, [&](Subject& s) {
      const Plan& plan = s.member().plan;
      const auto end = plan.candidates.begin() + plan.candidate_count;
      const bool islands = plan.candidate_count > 1 &&
                           std::find(plan.candidates.begin(), end, Method::kIslands) != end &&
                           globals().settings.islands.size() != static_cast<size_t>(s.member().ranks);
      const auto ranks = static_cast<uint32_t>(s.member().ranks);
      const bool wanted = islands || (choice == MeasureChoice::kFull && ranks <= kMaxHopRanks);
      if (wanted && Staging::lendable(plan.layout, probe_rounds(ranks)) != 0) return;
      others.push_back(&s.member());
      s.member().pending = false;
    });
    const nccl::Result result = measure_pairs(nccl_, device_, members_, subjects_);
    for (Member* m : others) m->pending = true;
    return result;
  }

  /// All trials of every pending member, in lockstep: several ranks of a communicator may live in this
  /// process.
  nccl::Result round(const Effort& effort, uint32_t samples) {
    size_t most = 0;
    for (Measured& m : measured_) {
      m.times.clear();
      if (m.subject.member().pending) most = std::max(most, m.trials.size());
    }
    for (size_t t = 0; t < most; ++t) capture(t, effort, samples);
    log::debug("measuring: {} graphs captured", most);
    meet_in_process(members_);
    // A rank without its graphs would let the others wait.
    nccl::Result result = agree(nccl_, members_, subjects_, "could not capture the measurement");
    if (result != nccl::kSuccess) return result;
    for (size_t t = 0; t < most; ++t) {
      for_trial(t, [&](Measured& m) { return m.subject.replay(t); });
      log::debug("measuring: replay {}", t);
      result = finish_exchange(nccl_, members_);
      if (result != nccl::kSuccess) return result;
      for_trial(t, [&](Measured& m) -> Status {
        Result<std::vector<double>> us = m.subject.times_us(2 * samples * t, samples);
        if (!us) return us.error();
        for (double& sample : *us) sample /= effort.calls_of(m.trials[t].bytes);
        m.times.push_back(time_of(std::move(*us)));
        return {};
      });
    }
    for (size_t first = 0; first < most; first += TimesRecord::kMost) {
      result = share_times(first);
      if (result != nccl::kSuccess) return result;
    }
    for_pending(subjects_, [](Subject& s) { s.drop_graphs(); });
    return agree(nccl_, members_, subjects_, "could not measure");
  }

  template <class Step>
  void for_trial(size_t t, Step&& step) {
    for (Measured& m : measured_) {
      Member& member = m.subject.member();
      if (!member.pending || t >= m.trials.size() || !m.subject.status) continue;
      const CurrentDevice scope(device_, member.device_index);
      m.subject.status = step(m);
    }
  }

  void capture(size_t t, const Effort& effort, uint32_t samples) {
    for_trial(t, [](Measured& m) { return m.subject.begin(); });
    for (uint32_t sample = 0; sample < samples; ++sample) {
      for_trial(t, [](Measured& m) { return m.subject.meet(m.subject.view()); });
      for_trial(t, [](Measured& m) { return m.subject.time(); });
      for (uint32_t call = 0; call < effort.calls; ++call) {
        bool nccl = false;
        for_trial(t, [&](Measured& m) {
          const auto& [method, bytes] = m.trials[t];
          if (call >= effort.calls_of(bytes)) return Status{};
          nccl = nccl || !method;
          if (!method) return Status{};
          return m.subject.run(m.subject.view(), *method, bytes,
                               m.subject.member().plan.piece(*method, Element::kBfloat16));
        });
        if (nccl) capture_nccl(t, effort, call);
      }
      for_trial(t, [](Measured& m) { return m.subject.time(); });
    }
    for_trial(t, [](Measured& m) { return m.subject.end(); });
  }

  void capture_nccl(size_t t, const Effort& effort, uint32_t call) {
    const auto takes_part = [&](const Trial& trial) {
      return !trial.method && call < effort.calls_of(trial.bytes);
    };
    (void)nccl_.GroupStart();
    for_trial(t, [&](Measured& m) {
      return takes_part(m.trials[t]) ? m.subject.run_nccl(nccl_, m.trials[t].bytes) : Status{};
    });
    const nccl::Result ended = nccl_.GroupEnd();
    for_trial(t, [&](Measured& m) -> Status {
      if (!takes_part(m.trials[t])) return {};
      if ((ended == nccl::kSuccess || ended == nccl::kInProgress) && usable(nccl_, m.subject.member().handle))
        return {};
      return Error{"NCCL's AllReduce in a capture: error " + std::to_string(ended)};
    });
  }

  /// The times of the trials from `first` on, as many as one exchange carries.
  nccl::Result share_times(size_t first) {
    const nccl::Result result = exchange(nccl_, members_, [&](Member& member) {
      TimesRecord record;
      for (const Measured& m : measured_) {
        if (&m.subject.member() != &member) continue;
        for (size_t t = first; t < m.times.size() && t < first + TimesRecord::kMost; ++t)
          record.times[t - first] = {static_cast<float>(m.times[t].us), static_cast<float>(m.times[t].fast),
                                     static_cast<float>(m.times[t].slow)};
      }
      return record;
    });
    if (result != nccl::kSuccess) return result;
    for (Measured& m : measured_) {
      if (!m.subject.member().pending) continue;
      const auto table = m.subject.member().all_records<TimesRecord>();
      for (size_t t = first; t < m.trials.size() && t < first + TimesRecord::kMost; ++t) {
        note(m.timings, m.trials[t], slowest(table, t - first));
      }
    }
    return nccl::kSuccess;
  }

  const nccl::Functions& nccl_;
  Device& device_;
  Members& members_;
  Subjects subjects_;
  std::vector<Measured> measured_;
};

}  // namespace

nccl::Result measure(const nccl::Functions& functions, Device& device, Members& members) {
  return Measure(functions, device, members).run();
}

}  // namespace onehop
