// What a step is, and why few are enough.
//
// These reductions hold the number of states down. Each keeps every outcome:
//
// * Stores are under way from the moment that the kernel is run to its next look. A store that is under way
//   may land as late as it likes, so to issue it early adds nothing and takes nothing away.
// * A look that does not find everything changes nothing (push), or keeps what it found (pull). Only looks
//   that find everything are steps. What an earlier look could have found and kept, this one finds too,
//   unless something was written over it in between. Then a rank that is slower, which is explored as well,
//   loses that word, or takes another for it, for every word is sent once. So it ends in a wait that nothing
//   ends, or in a wrong result.
// * Shadows are private, and follow from what a rank found and sent: a kernel is run on those that it began
// with,
//   and leaves others at its end, as it does with the turn.
// * For the same reason all halves of a look are read at once, at the moment of the last read.
// * A store to a half matters only to the looks at that half and to other writes to it. As long as it is the
//   only one under way, and no rank that looks at the half would be content with what lies there now, it
//   lands when a look takes it. Else its landing is a step of its own, so that every order is met.
// * Own stores (clear) must have landed at the kernel's end, and land there, or before by the rule above. The
//   end is a step of its own: peers may get far on what the kernel sent last.
//
// With Grain::kLandings every store to a half that somebody looks at, or to which another store is under way,
// lands in a step of its own. With Grain::kHalves, looks also read half by half, and what is not there yet.
#include "test/protocol/model.hpp"

#include <cstring>
#include <optional>
#include <unordered_set>

#include "test/protocol/model_state.hpp"
#include "test/protocol/random.hpp"

namespace onehop::test {
namespace {

/// One step, kept for the trace.
struct Event {
  enum What { kLooks, kReads, kEnds, kLands } what;
  uint32_t rank;  ///< of kLands: that of the memory
  uint32_t kernel;
  Write write{};
};

class Checker {
 public:
  Checker(const ModelDesign& design, const ModelOptions& options);
  Verdict run();

 private:
  struct Found {};  ///< thrown at the first violation

  const ModelStep& step_of(const RankState& rank) const { return options_.steps[rank.kernel]; }
  bool is_done(const RankState& rank) const { return rank.kernel == options_.steps.size(); }
  uint32_t line_halves(const RankState& rank) const { return 2 * Layout::expansion(step_of(rank).words); }
  bool accepts(const RankState& rank, size_t i, uint64_t value) const {
    if (const Awaited& awaited = rank.awaited[i]; awaited.changes) {
      const uint64_t change = value ^ awaited.before;
      return static_cast<uint32_t>(change) != 0 && change >> 32 != 0;
    }
    return design_.accepts(step_of(rank).words, static_cast<uint32_t>(i % line_halves(rank)), value,
                           rank.turn.epoch);
  }

  void visit(const ModelState& state);
  template <class Change>
  void step(const ModelState& state, const Event& event, const Change& change);

  bool is_stuck(const ModelState& state) const;
  bool lands_by_itself(const ModelState& state, const Write& write) const;
  std::optional<std::vector<uint64_t>> found(ModelState& state, uint32_t r) const;
  void read_half(ModelState& state, uint32_t r);

  bool advance(ModelState& state, uint32_t r, std::vector<uint64_t> log);
  void begin_kernel(ModelState& state, uint32_t r);
  void end_kernel(ModelState& state, uint32_t r);

  void violated(const std::string& what) {
    verdict_.violation = what;
    throw Found{};
  }
  std::string name(const Event& event) const;

  const ModelDesign& design_;
  const ModelOptions& options_;
  HalfMap map_;
  std::vector<unsigned char> addresses_;  ///< never written or read
  State nobodys_state_;                   ///< nor is this: a rank's own turn is in its RankState
  std::vector<CommView> comms_;
  std::vector<std::vector<std::vector<uint32_t>>> inputs_;  ///< by step and rank
  std::vector<std::vector<uint32_t>> expected_;             ///< by step
  std::vector<uint32_t> output_;

  struct HashOfHash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& hash) const { return hash.first; }
  };
  std::unordered_set<std::pair<uint64_t, uint64_t>, HashOfHash> seen_;
  std::vector<Event> path_;
  Verdict verdict_;
};

/// Room for each step, and no more: less to look at.
Layout smallest_layout(const ModelOptions& options) {
  Layout layout{options.ranks, 0, 0};
  for (const ModelStep& step : options.steps) {
    const auto carries = [&] {
      return largest_operation(step.method, layout, step.words, options.islands, 1) >= step.packs;
    };
    while (!carries()) ++(is_pull(step.method) ? layout.outbox : layout.inbox);
  }
  return layout;
}

Checker::Checker(const ModelDesign& design, const ModelOptions& options)
    : design_(design), options_(options) {
  const Layout layout = smallest_layout(options);
  addresses_.resize(layout.bytes() * options.ranks + sizeof(Pack));
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(addresses_.data()) % sizeof(Pack);
  unsigned char* base = addresses_.data() + (misaligned ? sizeof(Pack) - misaligned : 0);
  map_ = {layout, base, options.fold};
  for (uint32_t r = 0; r < options.ranks; ++r) {
    CommView comm;
    comm.rank = r;
    comm.ranks = options.ranks;
    comm.layout = layout;
    comm.islands = options.islands;
    comm.state = &nobodys_state_;
    comm.shadows = reinterpret_cast<Pack*>(base);
    for (uint32_t peer = 0; peer < options.ranks; ++peer) comm.staging(peer) = base + peer * layout.bytes();
    comms_.push_back(comm);
  }
  // One of two words for each element, whatever the operation: so that equal words often follow each other.
  Random random(1);
  uint32_t most = 0;
  for (const ModelStep& step : options.steps) most = std::max(most, 4 * step.packs);
  std::vector<uint32_t> words(size_t{2} * options.ranks * most);
  for (uint32_t& word : words) word = 1 + random.below(1 << 20);
  for (const ModelStep& model_step : options.steps) {
    const uint32_t count = 4 * model_step.packs;
    std::vector<uint32_t> sum(count);
    std::vector<std::vector<uint32_t>> inputs(options.ranks, std::vector<uint32_t>(count));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t which = random.below(2);
      for (uint32_t r = 0; r < options.ranks; ++r)
        sum[i] += inputs[r][i] = words[(which * options.ranks + r) * most + i];
    }
    const auto as_element = [&](uint32_t& word) {  // whole numbers of this size are exact in fp32
      const auto number = static_cast<float>(word);
      if (model_step.words == WordKind::kSentinel) std::memcpy(&word, &number, sizeof(word));
    };
    for (auto& input : inputs) std::for_each(input.begin(), input.end(), as_element);
    std::for_each(sum.begin(), sum.end(), as_element);
    inputs_.push_back(std::move(inputs));
    expected_.push_back(std::move(sum));
  }
  output_.resize(most);
}

Verdict Checker::run() {
  ModelState state;
  const uint32_t halves = map_.halves_of_rank();
  const uint64_t old_flag = options_.fresh ? 0 : uint64_t{options_.first.epoch - 100} << 32;
  for (size_t h = 0; h < size_t{options_.ranks} * halves; ++h)
    state.memory.push_back(h % halves < map_.layout.sentinel_bytes() / 8 ? ~uint64_t{0} : old_flag);
  state.ranks.resize(options_.ranks);
  try {
    for (uint32_t r = 0; r < options_.ranks; ++r) {
      const uint32_t word = options_.fresh_shadow;
      state.ranks[r].turn = options_.first;
      state.ranks[r].shadows.resize(map_.layout.shadow_bytes() / sizeof(Pack),
                                    Pack{{word, word, word, word}});
      begin_kernel(state, r);
    }
    visit(state);
  } catch (const Found&) {
    for (const Event& event : path_) verdict_.trace.push_back(name(event));
  }
  return verdict_;
}

template <class Change>
void Checker::step(const ModelState& state, const Event& event, const Change& change) {
  ModelState next = state;
  path_.push_back(event);
  ++verdict_.transitions;
  if (change(next)) visit(next);
  path_.pop_back();
}

void Checker::visit(const ModelState& state) {
  if (!seen_.insert(state.hash()).second) return;
  if (++verdict_.states > options_.most_states) violated("too many states");
  const uint64_t before = verdict_.transitions;

  for (size_t i = 0; i < state.pending.size(); ++i) {
    const Write& write = state.pending[i];
    if (!lands_by_itself(state, write)) continue;
    step(state, {Event::kLands, map_.owner_of(write.half), write.kernel, write}, [&](ModelState& next) {
      next.land(i);
      return true;
    });
  }
  for (uint32_t r = 0; r < options_.ranks; ++r) {
    const RankState& rank = state.ranks[r];
    if (is_done(rank)) continue;
    if (rank.returned) {
      step(state, {Event::kEnds, r, rank.kernel}, [&](ModelState& next) {
        end_kernel(next, r);
        return true;
      });
    } else if (options_.grain == Grain::kHalves) {
      step(state, {Event::kReads, r, rank.kernel}, [&](ModelState& next) {
        read_half(next, r);
        return true;
      });
    } else {
      ModelState next = state;
      auto values = found(next, r);
      if (!values) continue;
      path_.push_back({Event::kLooks, r, rank.kernel});
      ++verdict_.transitions;
      std::vector<uint64_t> log = rank.log;  // first a look that finds nothing, then one that finds all
      for (size_t i = 0; i < rank.awaited.size(); ++i)
        log.push_back(ReplayMemory::nothing(step_of(rank).words, rank.awaited[i], rank.turn.epoch));
      log.insert(log.end(), values->begin(), values->end());
      if (advance(next, r, std::move(log))) visit(next);
      path_.pop_back();
    }
  }

  if (options_.grain == Grain::kHalves ? is_stuck(state) : verdict_.transitions == before)
    for (uint32_t r = 0; r < options_.ranks; ++r)
      if (!is_done(state.ranks[r]))
        violated("rank " + std::to_string(r) + " waits for ever in operation " +
                 std::to_string(state.ranks[r].kernel));
}

/// Reading is always possible, so by halves a rank that waits for ever goes round in circles: nothing lands
/// that it looks at, and looks at what there is find nothing.
bool Checker::is_stuck(const ModelState& state) const {
  for (const Write& write : state.pending)
    if (lands_by_itself(state, write)) return false;
  for (const RankState& rank : state.ranks) {
    if (is_done(rank)) continue;
    if (rank.returned || !rank.partial.empty()) return false;
    bool finds_all = true;
    for (size_t i = 0; i < rank.awaited.size(); ++i)
      finds_all &= accepts(rank, i, state.memory[rank.awaited[i].half]);
    if (finds_all) return false;
  }
  return true;
}

bool Checker::lands_by_itself(const ModelState& state, const Write& write) const {
  if (state.pending_at(write.half).second > 1) return true;
  for (const RankState& rank : state.ranks) {
    if (is_done(rank) || rank.returned) continue;
    for (size_t i = 0; i < rank.awaited.size(); ++i) {
      if (rank.awaited[i].half != write.half) continue;
      if (options_.grain != Grain::kCoarse || accepts(rank, i, state.memory[write.half])) return true;
    }
  }
  return false;
}

/// What a look that finds everything finds; the stores that it takes land.
std::optional<std::vector<uint64_t>> Checker::found(ModelState& state, uint32_t r) const {
  const RankState& rank = state.ranks[r];
  std::vector<uint64_t> values;
  for (size_t i = 0; i < rank.awaited.size(); ++i) {
    const uint32_t half = rank.awaited[i].half;
    if (!accepts(rank, i, state.memory[half])) {
      const auto [first, count] = state.pending_at(half);
      if (options_.grain != Grain::kCoarse || count != 1 || !accepts(rank, i, state.pending[first].value))
        return std::nullopt;
      state.land(first);
    }
    values.push_back(state.memory[half]);
  }
  return values;
}

void Checker::read_half(ModelState& state, uint32_t r) {
  RankState& rank = state.ranks[r];
  rank.partial.push_back(state.memory[rank.awaited[rank.partial.size()].half]);
  if (rank.partial.size() < rank.awaited.size()) return;
  std::vector<uint64_t> log = rank.log;
  log.insert(log.end(), rank.partial.begin(), rank.partial.end());
  rank.partial.clear();
  advance(state, r, std::move(log));
}

/// Runs the kernel with this log. False: the last look did not find everything, and nothing came of it.
bool Checker::advance(ModelState& state, uint32_t r, std::vector<uint64_t> log) {
  RankState& rank = state.ranks[r];
  ReplayMemory memory(map_, rank.turn, rank.shadows, log);
  const ModelStep& model_step = step_of(rank);
  const bool sentinel = model_step.words == WordKind::kSentinel;
  std::fill(output_.begin(), output_.end(), 0);
  bool blocked = false;
  try {
    design_.run(memory, comms_[r],
                {inputs_[rank.kernel][r].data(), output_.data(), size_t{4} * model_step.packs,
                 sentinel ? Element::kFloat32 : Element::kUint32, Reduction::kSum, model_step.method});
  } catch (const ReplayMemory::Blocked&) {
    blocked = true;
  }
  for (; rank.emitted < memory.effects.size(); ++rank.emitted) {
    const Effect& effect = memory.effects[rank.emitted];
    state.add({effect.half, static_cast<uint8_t>(r), static_cast<uint8_t>(rank.kernel), effect.clear,
               effect.value});
  }
  rank.next_turn = memory.next_turn;
  rank.next_shadows = std::move(memory.shadows);
  rank.returned = !blocked;
  if (memory.last_look_failed) {
    // Near words are all looked at again. Of far ones those that had arrived are kept: what the rest was does
    // not matter, so it is written down as nothing.
    if (memory.awaited.size() == rank.awaited.size()) return false;
    for (size_t i = 0; i < rank.awaited.size(); ++i)
      if (std::find(memory.awaited.begin(), memory.awaited.end(), rank.awaited[i]) != memory.awaited.end())
        log[log.size() - rank.awaited.size() + i] =
            ReplayMemory::nothing(model_step.words, rank.awaited[i], rank.turn.epoch);
  }
  rank.log = std::move(log);
  rank.awaited = std::move(memory.awaited);
  if (rank.returned && std::memcmp(output_.data(), expected_[rank.kernel].data(),
                                   sizeof(uint32_t) * expected_[rank.kernel].size()) != 0)
    violated("rank " + std::to_string(r) + " has a wrong result of operation " + std::to_string(rank.kernel));
  return true;
}

void Checker::begin_kernel(ModelState& state, uint32_t r) {
  RankState& rank = state.ranks[r];
  rank.returned = false;
  rank.emitted = 0;
  rank.awaited.clear();
  rank.log.clear();
  if (!is_done(rank)) advance(state, r, {});
}

void Checker::end_kernel(ModelState& state, uint32_t r) {
  RankState& rank = state.ranks[r];
  for (size_t i = state.pending.size(); i-- > 0;)
    if (state.pending[i].clear && state.pending[i].writer == r) state.land(i);
  const std::string where =
      "at the end of operation " + std::to_string(rank.kernel) + " of rank " + std::to_string(r);
  for (const Write& write : state.pending) {
    if (map_.owner_of(write.half) != r) continue;
    if (write.writer != r && write.kernel <= rank.kernel)
      violated("a word to its inbox is under way " + where);
    if (write.writer == r && write.kernel < rank.kernel)
      violated("an older word to its outbox is under way " + where);
  }
  for (uint32_t peer = 0; peer < options_.ranks; ++peer)
    if (state.ranks[peer].kernel < rank.kernel)
      violated("rank " + std::to_string(peer) + " may still read what was sent before " + where);
  rank.turn = rank.next_turn;
  rank.shadows = rank.next_shadows;
  ++rank.kernel;
  begin_kernel(state, r);
}

std::string Checker::name(const Event& event) const {
  const std::string rank = "rank " + std::to_string(event.rank),
                    kernel = " operation " + std::to_string(event.kernel);
  switch (event.what) {
    case Event::kLooks:
      return rank + "," + kernel + ": finds all that it looks for, and goes on";
    case Event::kReads:
      return rank + "," + kernel + ": reads a half";
    case Event::kEnds:
      return rank + "," + kernel + ": ends";
    case Event::kLands:
      break;
  }
  return "a " + std::string(event.write.clear ? "clear" : "word") + " by rank " +
         std::to_string(event.write.writer) + "," + kernel + ", lands in half " +
         std::to_string(event.write.half % map_.halves_of_rank()) + " of " + rank;
}

}  // namespace

Verdict check(const ModelDesign& design, const ModelOptions& options) {
  return Checker(design, options).run();
}

std::string Verdict::text() const {
  std::string text = violation + "\n";
  for (size_t i = 0; i < trace.size(); ++i) {
    size_t times = 1;
    for (; i + 1 < trace.size() && trace[i] == trace[i + 1]; ++i) ++times;
    text += "  " + trace[i] + (times > 1 ? " (" + std::to_string(times) + " times)\n" : "\n");
  }
  return text;
}

}  // namespace onehop::test
