// A day of small calls: ranks that take turns on one thread, at millions of operations per second, by the
// code that the kernels run. Every result of every rank is compared.
//
// Flags are 32 bits of a counter, so what a day of calls can do wrong is to believe a flag that is 2^32 or
// 3 * 2^32 operations old (kernels/protocol/README.md, "Old flags"). No test lives that long, so the counter
// is set back now and then: an operation that fills its regions leaves flags e; then all ranks go back to an
// epoch before e, and come to e again, by operations of one pack. That is what memory looks like after
// 3 * 2^32 operations of which none was long, only that flags had less time to be renewed: two rounds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/protocol/all_reduce.hpp"
#include "test/protocol/broken.hpp"
#include "test/protocol/fibers.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {

struct EnduranceOptions {
  uint64_t operations = 1'000'000;
  uint32_t ranks = 2;
  Islands islands = equal_islands(2, 2);
  uint32_t first_epoch = 1;
  uint64_t seed = 1;
  bool recurs = true;  ///< whether epochs come again
};

struct Endured {
  uint64_t operations = 0;  ///< that all ranks have run
  uint64_t long_ones = 0;   ///< of more than a pack
  uint64_t recurrences = 0;
  uint64_t wraps = 0;   ///< times that the epoch became 0
  uint64_t wrong = 0;   ///< results, of any rank
  std::string problem;  ///< the first
  double seconds = 0;
};

inline constexpr uint32_t kEnduranceLines = 8;
inline constexpr uint32_t kEndurancePacks = kEnduranceLines * Layout::expansion(WordKind::kFlag);

/// Operations to be drawn from.
struct Bank {
  explicit Bank(const EnduranceOptions& options) {
    const Layout layout{options.ranks, kEndurancePacks, kEndurancePacks};
    any = random_script(
        {.layout = layout, .islands = options.islands, .threads = 1, .steps = 2048, .seed = options.seed});
    for (uint32_t i = 0; i < any.size(); ++i)
      if (packs_of(any[i]) == 1) short_ones.push_back(i);
    for (const Method method : kAllMethods) {
      const uint32_t packs = largest_operation(method, layout, WordKind::kFlag, options.islands, 1);
      for (uint64_t seed = 0; packs > 0 && seed < 2; ++seed)
        full.push_back(plain_step(Element::kUint32, size_t{4} * packs, options.ranks, seed, method));
    }
  }

  Script any;                        ///< random ones, many like those before them
  std::vector<uint32_t> short_ones;  ///< those of `any` with one pack
  Script full;                       ///< flag words in every place that a method has, two of each
  std::vector<const Step*> settled;  ///< whose `expected` has the bits of NaNs that the ranks had
};

/// The same on every rank: what is run when.
class Schedule {
 public:
  static constexpr uint32_t kCycle = 2048;
  /// Operations from an epoch to its recurrence: two rounds of the longest rotation, and as many as put the
  /// recurring one into the same slot.
  static constexpr uint32_t kReturn = 2 * kFlagSlots * 2 * kEnduranceLines + 3;
  static_assert(kReturn % kInboxSlots == kInboxSlots - 1);

  Schedule(Bank& bank, const EnduranceOptions& options)
      : bank_(bank), recurs_(options.recurs), random_(options.seed) {}

  struct Move {
    Step* step;
    bool goes_back;  ///< before it
  };
  Move next(uint64_t k) {
    const auto at = static_cast<uint32_t>(k % kCycle);
    if (recurs_ && at == 0) method_ = random_.below(static_cast<uint32_t>(bank_.full.size()));
    if (recurs_ && (at == 0 || at == kReturn + 1)) {
      // Another of the same method, so that what is left of the first would be seen.
      const uint32_t chosen = at == 0 ? method_ : method_ ^ 1;
      return {&bank_.full[chosen], false};
    }
    const bool is_short = (recurs_ && at <= kReturn) || !random_.one_in(16);
    // In the order of the bank as often as not: then words repeat.
    place_ = random_.one_in(2) ? place_ + 1 : static_cast<uint32_t>(random_.next() >> 32);
    const uint32_t index = is_short ? bank_.short_ones[place_ % bank_.short_ones.size()]
                                    : place_ % static_cast<uint32_t>(bank_.any.size());
    return {&bank_.any[index], recurs_ && at == 1};
  }

 private:
  Bank& bank_;
  const bool recurs_;
  Random random_;
  uint32_t method_ = 0, place_ = 0;
};

/// Ordinary memory; whoever waits lets the others go on, and some do so before they begin or send.
class FiberMemory : public HostMemory {
 public:
  FiberMemory(Fibers& fibers, uint64_t seed, std::function<void()> hangs)
      : fibers_(fibers), random_(seed), hangs_(std::move(hangs)) {}

  void begin() { pauses_ = 0; }

  void send(Pack* to, const Pack& pack) {
    if (random_.one_in(32)) fibers_.yield();
    HostMemory::send(to, pack);
  }
  Turn load_turn(const Turn* turn) {
    if (random_.one_in(4)) fibers_.yield();
    return HostMemory::load_turn(turn);
  }
  void pause() {
    if (++pauses_ % kPausesOfAHang == 0) hangs_();
    fibers_.yield();
  }

 private:
  static constexpr uint64_t kPausesOfAHang = 1'000'000;

  Fibers& fibers_;
  Random random_;
  std::function<void()> hangs_;
  uint64_t pauses_ = 0;  ///< since the operation began
};

template <class Design>
class Endurance {
 public:
  explicit Endurance(const EnduranceOptions& options)
      : options_(options), bank_(options), fibers_(bodies()), ranks_(options.ranks) {
    const Layout layout{options.ranks, kEndurancePacks, kEndurancePacks};
    for (uint32_t r = 0; r < options.ranks; ++r) {
      Rank& rank = ranks_[r];
      rank.staging.resize(layout.bytes() / sizeof(Pack));
      std::memset(rank.staging.data(), 0xFF, layout.sentinel_bytes());
      rank.shadows.resize(layout.shadow_bytes() / sizeof(Pack));
      std::memset(rank.shadows.data(), 0xFF, layout.shadow_bytes());
      rank.state.turn = {options.first_epoch, options.first_epoch % kInboxSlots, 0, 0};
    }
    for (uint32_t r = 0; r < options.ranks; ++r) {
      CommView& comm = ranks_[r].comm;
      comm.rank = r;
      comm.ranks = options.ranks;
      comm.islands = options.islands;
      comm.layout = layout;
      comm.state = &ranks_[r].state;
      comm.shadows = ranks_[r].shadows.data();
      comm.control = &ranks_[r].control;
      for (uint32_t p = 0; p < options.ranks; ++p)
        comm.staging(p) = reinterpret_cast<unsigned char*>(ranks_[p].staging.data());
    }
  }

  Endured run() {
    const auto start = std::chrono::steady_clock::now();
    fibers_.run();
    endured_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    endured_.operations = options_.operations;
    for (const Rank& rank : ranks_) endured_.operations = std::min(endured_.operations, rank.done);
    return endured_;
  }

 private:
  struct Rank {
    std::vector<Pack> staging, shadows;
    State state;
    Control control;
    CommView comm;
    uint64_t done = 0;  ///< operations
  };

  std::vector<std::function<void()>> bodies() {
    std::vector<std::function<void()>> all;
    for (uint32_t r = 0; r < options_.ranks; ++r) all.push_back([this, r] { live(r); });
    return all;
  }

  void live(uint32_t r) {
    Rank& rank = ranks_[r];
    FiberMemory memory(fibers_, options_.seed * 31 + r, [this, r] {
      stop("rank " + std::to_string(r) + " waits for ever in operation " + std::to_string(ranks_[r].done));
    });
    Schedule schedule(bank_, options_);
    std::vector<Pack> result(bank_largest());
    uint32_t recurring = 0;
    for (uint64_t k = 0; k < options_.operations && !failed_; ++k) {
      const auto [step, goes_back] = schedule.next(k);
      if (goes_back) {
        // Between operations of all ranks: nobody looks at any word.
        while (!failed_ && !all_have_done(k)) fibers_.yield();
        rank.state.turn.epoch = recurring - Schedule::kReturn;
        if (r == 0) ++endured_.recurrences;
      }
      recurring = rank.state.turn.epoch;
      const size_t bytes = step->expected.size();
      std::memset(result.data(), 0xA5, bytes);
      const Operation operation{step->parts[r].input.data(),
                                result.data(),
                                step->count,
                                step->element,
                                step->reduction,
                                step->method};
      memory.begin();
      Variant<Design>::run(memory, SingleThread{}, rank.comm, operation);
      if (rank.control.stop != 0) return;
      if (bytes != 0 && std::memcmp(result.data(), step->expected.data(), bytes) != 0)
        judge(r, k, *step, result);
      rank.done = k + 1;
      if (r != 0) continue;
      endured_.long_ones += bytes > sizeof(Pack);
      endured_.wraps += rank.state.turn.epoch == 0 && recurring != 0;
    }
  }

  bool all_have_done(uint64_t operations) const {
    for (const Rank& rank : ranks_)
      if (rank.done < operations) return false;
    return true;
  }

  size_t bank_largest() const {
    size_t bytes = 0;
    for (const Script* script : {&bank_.any, &bank_.full})
      for (const Step& step : *script) bytes = std::max(bytes, step.expected.size());
    return bytes / sizeof(Pack) + 1;
  }

  /// The bits of a NaN are not specified, but the same on all ranks: those of the first that had it.
  void judge(uint32_t r, uint64_t k, Step& step, const std::vector<Pack>& result) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(result.data());
    const Bytes got(bytes, bytes + step.expected.size());
    bool right = std::count(bank_.settled.begin(), bank_.settled.end(), &step) == 0;
    for (size_t i = 0; i < step.count && right; ++i)
      right = bits_at(step.element, got, i) == bits_at(step.element, step.expected, i) ||
              (is_nan_lane(step.element, got, i) && is_nan_lane(step.element, step.expected, i));
    if (right) {
      step.expected = got;
      bank_.settled.push_back(&step);
      return;
    }
    ++endured_.wrong;
    stop("rank " + std::to_string(r) + " has a wrong result of operation " + std::to_string(k) + ", " +
         name_of(step.method) + " of " + std::to_string(step.count) + " elements");
  }

  void stop(const std::string& problem) {
    if (endured_.problem.empty()) endured_.problem = problem;
    failed_ = true;
    for (Rank& rank : ranks_) rank.control.stop = static_cast<uint32_t>(Stop::kAbort);
  }

  const EnduranceOptions options_;
  Bank bank_;
  Fibers fibers_;
  std::vector<Rank> ranks_;
  Endured endured_;
  bool failed_ = false;
};

/// `Design`: ProvenDesign, or a broken one.
template <class Design = ProvenDesign>
Endured endure(const EnduranceOptions& options) {
  return Endurance<Design>(options).run();
}

}  // namespace onehop::test
