#include "test/gpu/life/soak_ranks.hpp"

#include <chrono>
#include <thread>

#include "test/gpu/life/soak_calls.hpp"

namespace onehop::test {
namespace {

#ifdef ONEHOP_ON_STANDIN  // whose kernels are slow
constexpr uint32_t kMostReplays = 4;
#else
constexpr uint32_t kMostReplays = 60;
#endif
constexpr uint32_t kBuffers = 4;
constexpr int kStepsBetweenChecks = 8;

class SoakRank {
 public:
  SoakRank(Soak& soak, uint32_t rank)
      : soak_(soak), rank_(rank), common_(soak.seed), own_(soak.seed * 100 + rank) {
    load_device_work();
    const size_t bytes = std::max(kMostPassed, soak.max_bytes) + 64;
    for (auto& buffers : exact_) buffers = std::make_unique<Checked>(rank, bytes);
    for (auto& buffers : random_) buffers = std::make_unique<Checked>(rank, bytes);
    MUST(cudaMalloc(reinterpret_cast<void**>(&round_), sizeof(*round_)));
    MUST(cudaMemset(round_, 0, sizeof(*round_)));
    for (cudaEvent_t* event : {&fork_, &join_}) MUST(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    MUST(cudaDeviceSynchronize());
    soak_.streams[rank_] = &streams_;
  }
  SoakRank(const SoakRank&) = delete;
  ~SoakRank() {
    soak_.streams[rank_] = nullptr;
    (void)cudaFree(round_);
  }

  void run() {
    for (uint32_t s = 0; s < soak_.slots_used; ++s) renew(s);
    if (rank_ == 0) {
      std::printf("soak: communicators made\n");
      std::fflush(stdout);
    }
    const double begin = now_s(), between = std::max(4.0, soak_.seconds / 12);
    double renewed = begin;
    for (uint32_t at = 0;; ++at) {
      for (int i = 0; i < kStepsBetweenChecks; ++i) step();
      verify();
      if (rank_ == 0) {
        const bool steady = !soak_.steady.empty() && access(soak_.steady.c_str(), F_OK) == 0;
        soak_.stop = !steady && now_s() - begin > soak_.seconds;
        soak_.renew = !steady && now_s() - renewed > between;
      }
      meet();
      if (soak_.stop) break;
      if (soak_.renew) {
        renew(at % soak_.slots_used);
        renewed = now_s();
      }
      meet();
    }
    for (Soak::Slot& slot : soak_.slots) destroy(slot);
  }

 private:
  void say(const char* what) {
    soak_.steps[rank_] = what;
    ++soak_.progress;
  }
  void meet() { soak_.barrier.arrive_and_wait(); }
  /// No kernel waits for anything.
  void settle() {
    for (const TracedStream& stream : streams_) stream.synchronize();
    launches_ = 0;
    meet();
  }

  // Communicators.

  void destroy(Soak::Slot& slot) {
    say("destroys");
    settle();
    if (slot.ranks > 0 && slot.has(rank_)) MUST(ncclCommDestroy(slot.comms[rank_]));
    meet();
  }

  /// Slot 0 is for 2 ranks, slot 1 for 3 or 4, slot 2 for more, as far as there are ranks.
  void renew(uint32_t at) {
    Soak::Slot& slot = soak_.slots[at];
    destroy(slot);
    const uint32_t most = at == 0 ? 2 : at == 1 ? 4 : 8, least = at == 0 ? 2 : at == 1 ? 3 : 5;
    const uint32_t wanted = least + common_() % (most - least + 1), ranks = std::min(soak_.ranks, wanted),
                   first = common_() % (soak_.ranks - ranks + 1);
    say("creates");
    if (rank_ == 0) {
      MUST(ncclGetUniqueId(&slot.id));
      slot.first = first;
      slot.ranks = ranks;
      slot.comms.assign(soak_.ranks, nullptr);
      slot.hashes.assign(soak_.ranks, 0);
      ++soak_.communicators;
    }
    meet();
    if (slot.has(rank_))
      MUST(ncclCommInitRank(&slot.comms[rank_], static_cast<int>(ranks), slot.id,
                            static_cast<int>(rank_ - first)));
    random_[at]->clear();
    say("sets up");
    meet();
    one_by_one(slot, [&] { exact(slot, {.count = 100, .seed = next_seed()}); });
    if (slot.has(rank_) && rank_ == first) {
      const onehopCommStatus status = LoadedOnehop().status(slot.comms[rank_]);
      slot.on = status.state == onehopOn;
      slot.reason = status.reason;
    }
    meet();
    if (slot.may_pass()) connect(slot);
  }

  /// NCCL connects, and may allocate, at the first call on each of its ways: not while kernels wait.
  void connect(Soak::Slot& slot) {
    say("connects");
    for (const size_t count : {size_t{100}, size_t{5000}, size_t{20000}, kMostPassed / 16}) {
      one_by_one(slot, [&] { other(slot, 0, {.count = count, .seed = next_seed()}); });
      one_by_one(slot, [&] { other(slot, 1, {.count = count, .seed = next_seed()}); });
      one_by_one(slot, [&] { other(slot, 2, {.count = count, .seed = next_seed()}); });
    }
    if (slot.on && soak_.max_bytes >= kMostPassed) return;
    for (size_t bytes = slot.on ? soak_.max_bytes + 4 : 1024; bytes <= kMostPassed; bytes = bytes * 2)
      one_by_one(slot, [&] { exact(slot, {.count = bytes / 4, .seed = next_seed()}); });
    one_by_one(slot, [&] { exact(slot, {.count = kMostPassed / 4, .seed = next_seed()}); });
  }
  template <class Work>
  void one_by_one(Soak::Slot& slot, Work&& work) {
    // The numbers are drawn by all.
    if (slot.has(rank_)) {
      work();
    } else {
      next_seed();
    }
    settle();
  }

  // Calls.

  uint32_t next_seed() { return ++seed_; }

  Call random_call(const Soak::Slot& slot, size_t most_bytes) {
    Call call = draw_call(common_, own_, slot, soak_.max_bytes, most_bytes);
    call.seed = next_seed();
    return call;
  }

  Checked& buffers_for(const Soak::Slot& slot, const Call& call, uint32_t which) {
    Checked& checked = call.random ? *random_[&slot - soak_.slots] : *exact_[which];
    checked.set_rank(rank_ - slot.first);
    return checked;
  }
  /// Fill, call, check, note.
  void enqueued(const char* what, const Soak::Slot& slot, const Call& call, TracedStream& stream) {
    stream.enqueued({what, static_cast<uint32_t>(&slot - soak_.slots), call.type,
                     call.count * size_of(static_cast<uint32_t>(call.type))});
    launches_ += 4;
  }

  void exact(const Soak::Slot& slot, const Call& call, uint32_t which = 0, Round round = nullptr) {
    buffers_for(slot, call, which)
        .all_reduce(call, slot.comms[rank_], static_cast<int>(slot.ranks), streams_[which % 2], round);
    if (round != nullptr) return;
    enqueued("all-reduce", slot, call, streams_[which % 2]);
    ++soak_.calls;
  }

  void other(const Soak::Slot& slot, uint32_t kind, Call call) {
    call.in_place = call.random = false;
    call.offset = 0;
    const int ranks = static_cast<int>(slot.ranks);
    Checked& checked = buffers_for(slot, call, 0);
    if (kind == 0) checked.all_gather(call, slot.comms[rank_], ranks, streams_[0]);
    if (kind == 1)
      checked.broadcast(call, static_cast<int>(call.seed % slot.ranks), slot.comms[rank_], ranks,
                        streams_[0]);
    if (kind == 2) checked.reduce_scatter(call, slot.comms[rank_], ranks, streams_[0]);
    constexpr const char* kNames[] = {"all-gather", "broadcast", "reduce-scatter"};
    enqueued(kNames[kind], slot, call, streams_[0]);
  }

  /// Calls on both streams come between what the first stream held before and what it holds next.
  template <class Work>
  void on_both_streams(Work&& work) {
    MUST(cudaEventRecord(fork_, streams_[0]));
    MUST(cudaStreamWaitEvent(streams_[1], fork_, 0));
    work();
    MUST(cudaEventRecord(join_, streams_[1]));
    MUST(cudaStreamWaitEvent(streams_[0], join_, 0));
  }

  // Steps. Every rank draws the same numbers in them, a member or not.

  void step() {
    const Soak::Slot& slot = soak_.slots[common_() % std::size(soak_.slots)];
    const uint32_t kind = common_() % 16;
    if (own_() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own_() % 3000));
    if (!slot.is_used()) return;
    if (kind < 5)
      one_stream(slot);
    else if (kind < 8)
      two_streams(slot);
    else if (kind < 10)
      group(slot);
    else if (kind < 13)
      graph(slot);
    else if (kind < 15)
      others(slot);
    else
      opposite();
    // The queue of launches must not fill: who waits for room may keep the others from launching.
    if (launches_ > 150) {
      for (const TracedStream& stream : streams_) stream.synchronize();
      launches_ = 0;
    }
  }

  void one_stream(const Soak::Slot& slot) {
    say("one stream");
    for (uint32_t n = 1 + common_() % 16; n > 0; --n) {
      const Call call = random_call(slot, SIZE_MAX);
      if (slot.has(rank_)) exact(slot, call);
    }
  }

  void two_streams(const Soak::Slot& slot) {
    say("two streams");
    on_both_streams([&] {
      for (uint32_t n = 2 + common_() % 12; n > 0; --n) {
        Call call = random_call(slot, SIZE_MAX);
        call.random = false;  // one set of buffers, so on one stream only
        if (call.op == ncclAvg) call.op = ncclMax;
        if (slot.has(rank_)) exact(slot, call, own_() % 2);
      }
    });
  }

  void group(const Soak::Slot& slot) {
    say("a group");
    const bool both = common_() % 2 == 0;
    on_both_streams([&] {
      std::vector<Call> calls;
      for (uint32_t n = 2 + common_() % (kBuffers - 1); n > 0; --n) {
        calls.push_back(random_call(slot, kMostPassed));
        calls.back().random = false;
        if (calls.back().op == ncclAvg) calls.back().op = ncclMin;
      }
      if (!slot.has(rank_)) return;
      const auto stream = [&](size_t i) -> TracedStream& { return streams_[both ? i % 2 : 0]; };
      const int ranks = static_cast<int>(slot.ranks);
      for (size_t i = 0; i < calls.size(); ++i)
        buffers_for(slot, calls[i], static_cast<uint32_t>(i)).before(calls[i], ranks, stream(i));
      MUST(ncclGroupStart());
      for (size_t i = 0; i < calls.size(); ++i)
        buffers_for(slot, calls[i], static_cast<uint32_t>(i)).between(calls[i], slot.comms[rank_], stream(i));
      MUST(ncclGroupEnd());
      for (size_t i = 0; i < calls.size(); ++i) {
        buffers_for(slot, calls[i], static_cast<uint32_t>(i)).behind(calls[i], ranks, stream(i));
        enqueued("all-reduce in a group", slot, calls[i], stream(i));
        ++soak_.calls;
      }
    });
  }

  void graph(const Soak::Slot& slot) {
    say("captures");
    settle();
    std::vector<Call> calls;
    for (uint32_t n = 1 + common_() % 8; n > 0; --n) calls.push_back(random_call(slot, 256 << 10));
    const uint32_t replays = 1 + common_() % kMostReplays;
    const bool beside = common_() % 2 == 0;
    std::unique_ptr<Graph> captured;
    if (slot.has(rank_))
      captured = std::make_unique<Graph>(streams_[0], [&] {
        for (uint32_t c = 0; c < calls.size(); ++c) {
          streams_[0].captured(2 * c + 1);
          exact(slot, calls[c], 0, round_);
          streams_[0].captured(2 * c + 2);
        }
        MUST(advance(round_, streams_[0]));
      });
    streams_[0].describe(text_of(calls));
    meet();
    say("replays");
    for (uint32_t replay = 0; replay < replays; ++replay) {
      if (captured != nullptr) {
        captured->launch(streams_[0]);
        enqueued("replay", slot, calls[0], streams_[0]);
        soak_.calls += calls.size();
        ++soak_.replays;
      }
      if (beside && replay % 8 == 3) {
        const Call call = random_call(slot, kSmall);
        if (slot.has(rank_)) exact(slot, call);
      }
      if (replay % 10 == 9) streams_[0].synchronize();
    }
    settle();
    streams_[0].describe("");
    captured.reset();
    // All ranks' counters say the same, members or not.
    MUST(cudaMemsetAsync(round_, 0, sizeof(*round_), streams_[0]));
    streams_[0].synchronize();
    meet();
  }

  void others(const Soak::Slot& slot) {
    if (!slot.may_pass()) return;
    say("other collectives");
    for (uint32_t n = 1 + common_() % 4; n > 0; --n) {
      const uint32_t kind = common_() % 3;
      Call call{.count = 1 + common_() % (kMostPassed / 32), .seed = next_seed()};
      if (slot.has(rank_)) other(slot, kind, call);
      const Call between = random_call(slot, SIZE_MAX);
      if (slot.has(rank_)) exact(slot, between);
    }
  }

  /// Two communicators on two streams, in opposite order on ranks of even and of odd number; small, so that
  /// there is room for all of these kernels at once.
  void opposite() {
    say("two communicators");
    const Soak::Slot *a = &soak_.slots[0], *b = &soak_.slots[1];
    Call calls[2] = {random_call(*a, kSmall), random_call(*b, kSmall)};
    for (Call& call : calls) {
      call.random = false;
      if (call.op == ncclAvg) call.op = ncclSum;
    }
    on_both_streams([&] {
      for (uint32_t k = 0; k < 2; ++k) {
        const uint32_t c = (k + rank_) % 2;
        const Soak::Slot& slot = c == 0 ? *a : *b;
        if (slot.has(rank_)) exact(slot, calls[c], c);
      }
    });
  }

  void verify() {
    say("verifies");
    settle();
    for (uint32_t b = 0; b < kBuffers; ++b) {
      soak_.checked += exact_[b]->verify("buffers " + std::to_string(b));
      exact_[b]->clear();
    }
    for (uint32_t s = 0; s < std::size(soak_.slots); ++s) {
      soak_.checked += random_[s]->verify("random values");
      if (soak_.slots[s].has(rank_)) soak_.slots[s].hashes[rank_] = random_[s]->tally().hash;
    }
    meet();
    if (rank_ == 0)
      for (const Soak::Slot& slot : soak_.slots)
        for (uint32_t r = slot.first; r < slot.first + slot.ranks; ++r)
          if (slot.hashes[r] != slot.hashes[slot.first])
            fail("ranks " + std::to_string(slot.first) + " and " + std::to_string(r) + " of " +
                 std::to_string(slot.ranks) + " got different bits of random values");
    meet();
    for (const auto& buffers : random_) buffers->clear();
  }

  Soak& soak_;
  const uint32_t rank_;
  std::mt19937 common_, own_;
  uint32_t seed_ = 0, launches_ = 0;
  std::array<TracedStream, 2> streams_;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  std::unique_ptr<Checked> exact_[kBuffers], random_[3];
  uint32_t* round_ = nullptr;
};

}  // namespace

void soak_rank(Soak& soak, uint32_t rank) {
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  MUST(cudaSetDevice(static_cast<int>(rank) % devices));  // ahead of its streams and buffers
  SoakRank(soak, rank).run();
}

}  // namespace onehop::test
