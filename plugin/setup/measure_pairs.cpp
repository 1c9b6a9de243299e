#include "plugin/setup/measure_pairs.hpp"

#include <algorithm>
#include <array>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/measure/times_record.hpp"
#include "plugin/setup/probe.hpp"

namespace onehop {
namespace {

constexpr uint32_t kSamples = 3;
constexpr uint32_t kLatencyCalls = 4;
constexpr Pairs::Way kBothWays[] = {Pairs::kWritten, Pairs::kRead};
constexpr Pairs::Load kAllLoads[] = {Pairs::kLatency, Pairs::kAlone, Pairs::kTogether};

/// What one rank found, as the receiver.
struct PairsRecord {
  std::array<std::array<std::array<float, kMaxHopRanks>, Pairs::kLoads>, Pairs::kWays> us{};
  uint32_t failed = 0;
  std::array<uint32_t, 15> reserved{};
};
static_assert(sizeof(PairsRecord) == Member::kRecordBytes);

/// The pairs of one rank.
class PairTrials {
 public:
  explicit PairTrials(Subject& subject) : subject_(subject), member_(subject.member()) {}

  Status capture() {
    const auto ranks = static_cast<uint32_t>(member_.ranks);
    std::vector<uint32_t> round_of(ranks, 0);
    for (uint32_t round = 0; round < probe_rounds(ranks); ++round)
      if (const int partner = partner_of(static_cast<uint32_t>(member_.rank), round); partner >= 0)
        round_of[static_cast<size_t>(partner)] = round;
    Result<Staging::Lent> lent = member_.staging->lend(probe_rounds(ranks), round_of, member_.stream);
    if (!lent) return lent.error();
    lent_ = std::move(*lent);
    lent_.all.budget_ns = subject_.view().budget_ns;
    for (CommView& pair : lent_.with) pair.budget_ns = subject_.view().budget_ns;

    Status status = subject_.begin();
    for (const Pairs::Way way : kBothWays)
      for (const Pairs::Load load : kAllLoads)
        for (uint32_t sample = 0; sample < kSamples && status; ++sample) status = one_of_each(way, load);
    // Also after a failure: the stream must not stay in capture.
    const Status ended = subject_.end();
    return status ? ended : status;
  }

  /// After the replay.
  PairsRecord record() const {
    PairsRecord record;
    record.failed = subject_.status ? 0 : 1;
    std::array<std::array<std::array<std::vector<double>, kMaxHopRanks>, Pairs::kLoads>, Pairs::kWays>
        samples;
    for (size_t i = 0; i < timed_.size() && record.failed == 0; ++i) {
      const Result<std::vector<double>> us = subject_.times_us(2 * i, 1);
      if (!us)
        record.failed = 1;
      else
        samples[timed_[i].way][timed_[i].load][timed_[i].peer].push_back(us->front());
    }
    for (const Pairs::Way way : kBothWays)
      for (const Pairs::Load load : kAllLoads)
        for (uint32_t peer = 0; peer < kMaxHopRanks; ++peer)
          if (auto& all = samples[way][load][peer]; !all.empty())
            record.us[way][load][peer] =
                static_cast<float>(time_of(all).us / (load == Pairs::kLatency ? kLatencyCalls : 1));
    return record;
  }
  uint64_t bytes() const { return uint64_t{lent_.packs} * sizeof(Pack); }
  Subject& subject() { return subject_; }

 private:
  int partner_of(uint32_t rank, uint32_t round) const {
    return probe_partner(rank, static_cast<uint32_t>(member_.ranks), round);
  }

  /// Every pair once: with all ranks waiting for each pair, or for each round of pairs.
  Status one_of_each(Pairs::Way way, Pairs::Load load) {
    const Layout& layout = lent_.all.layout;
    if ((way == Pairs::kWritten ? layout.inbox : layout.outbox) == 0) return {};
    const auto ranks = static_cast<uint32_t>(member_.ranks), me = static_cast<uint32_t>(member_.rank);
    Status status;
    for (uint32_t round = 0; round < probe_rounds(ranks) && status; ++round) {
      const int partner = partner_of(me, round);
      if (load == Pairs::kTogether) {
        status = subject_.meet(lent_.all);
        if (status && partner >= 0) status = exchange_with(static_cast<uint32_t>(partner), way, load);
        continue;
      }
      for (uint32_t rank = 0; rank < ranks && status; ++rank) {
        const int other = partner_of(rank, round);
        if (other < static_cast<int>(rank)) continue;  // nobody, or it was its turn already
        status = subject_.meet(lent_.all);
        if (status && (rank == me || other == static_cast<int>(me)))
          status = exchange_with(static_cast<uint32_t>(partner), way, load);
      }
    }
    return status;
  }

  Status exchange_with(uint32_t peer, Pairs::Way way, Pairs::Load load) {
    const bool few = load == Pairs::kLatency;
    const Method method = way == Pairs::kWritten ? Method::kOneShot : Method::kOneShotPull;
    const uint64_t all = few ? sizeof(Pack) : bytes();
    timed_.push_back({way, load, peer});
    Status status = subject_.time();
    for (uint32_t call = 0; call < (few ? kLatencyCalls : 1) && status; ++call)
      status = subject_.run(lent_.with[peer], method, all, all / 2);
    return status ? subject_.time() : status;
  }

  struct Timed {
    Pairs::Way way;
    Pairs::Load load;
    uint32_t peer;
  };
  Subject& subject_;
  Member& member_;
  Staging::Lent lent_;
  std::vector<Timed> timed_;  ///< in the order of the timers
};

Pairs pairs_of(std::span<const PairsRecord> table, uint64_t bytes) {
  Pairs pairs;
  pairs.ranks = static_cast<uint32_t>(table.size());
  pairs.bytes = bytes;
  for (const Pairs::Way way : kBothWays)
    for (const Pairs::Load load : kAllLoads)
      for (uint32_t r = 0; r < pairs.ranks; ++r)
        for (uint32_t peer = 0; peer < pairs.ranks; ++peer) {
          const double us = table[r].us[way][load][peer];
          pairs.us[way][load][r][peer] = us == 0 ? 0 : believed(us);  // 0: not measured
        }
  return pairs;
}

/// From what all ranks know.
void use(const Pairs& pairs, Member& m) {
  if (m.first_of_node) log::debug("pairs of {} ranks\n{}", m.ranks, describe(pairs));
  Plan& plan = m.plan;
  const auto end = plan.candidates.begin() + plan.candidate_count;
  const auto islands = std::find(plan.candidates.begin(), end, Method::kIslands);
  if (islands == end || globals().settings.islands.size() == pairs.ranks) return;
  if (const std::optional<Islands> found = find_islands(pairs)) {
    plan.islands = *found;
    m.staging->view().islands = *found;
  } else {
    std::copy(islands + 1, end, islands);
    --plan.candidate_count;
  }
}

}  // namespace

nccl::Result measure_pairs(const nccl::Functions& functions, Device& device, Members& members,
                           Subjects& subjects) {
  std::vector<PairTrials> trials;
  for_pending(subjects, [&](Subject& s) { trials.emplace_back(s); });
  if (trials.empty()) return nccl::kSuccess;
  const auto of = [&](const Member& m) -> PairTrials* {
    for (PairTrials& t : trials)
      if (&t.subject().member() == &m) return &t;
    return nullptr;
  };
  try_each(device, subjects, [&](Subject& s) { return of(s.member())->capture(); });
  meet_in_process(members);
  // The memory is emptied on all ranks before any of them sends something.
  nccl::Result result = agree(functions, members, subjects, "could not capture the pairs");
  if (result != nccl::kSuccess) return result;
  try_each(device, subjects, [](Subject& s) { return s.replay(0); });
  result = finish_exchange(functions, members);
  if (result != nccl::kSuccess) return result;
  // And again, for the real communicator: nobody leaves the exchange before all have come to it.
  try_each(device, subjects, [](Subject& s) { return s.member().staging->reset(s.member().stream); });
  result = exchange(functions, members, [&](Member& m) {
    const PairTrials* t = of(m);
    return t != nullptr ? t->record() : PairsRecord{};
  });
  if (result != nccl::kSuccess) return result;
  for (PairTrials& t : trials) {
    Member& m = t.subject().member();
    if (!m.pending) continue;
    const auto table = m.all_records<PairsRecord>();
    if (std::any_of(table.begin(), table.end(), [](const PairsRecord& r) { return r.failed != 0; })) {
      m.not_measured = "the exchanges of two ranks could not be timed";
      m.pending = false;
      continue;
    }
    use(pairs_of(table, t.bytes()), m);
    t.subject().drop_graphs();
  }
  return nccl::kSuccess;
}

}  // namespace onehop
