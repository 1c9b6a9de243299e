#include "plugin/setup/set_up.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/geometry.hpp"
#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"
#include "plugin/hash.hpp"
#include "plugin/log.hpp"
#include "plugin/measure/choose.hpp"
#include "plugin/nccl_switches.hpp"
#include "plugin/setup/exchange.hpp"
#include "plugin/setup/measure.hpp"
#include "plugin/setup/own_hello.hpp"
#include "plugin/setup/place.hpp"
#include "plugin/setup/planned.hpp"
#include "plugin/setup/probe.hpp"
#include "plugin/setup/progress.hpp"
#include "plugin/setup/stages.hpp"

namespace onehop {
namespace {

using Clock = std::chrono::steady_clock;

/// Longest wait for what peers send over their sockets.
constexpr std::chrono::seconds kMeetingDeadline{10};

/// The steps, in order. Every decision in them is drawn from what was exchanged, or from the number of ranks.
class SetUp {
 public:
  SetUp(const nccl::Functions& functions, Device& device) : nccl_(functions), device_(device) {}

  nccl::Result run(std::span<const nccl::Comm> comms) {
    const RelaxedCapture relaxed(device_);
    for (const nccl::Comm handle : comms) {
      auto member = std::make_unique<Member>(device_, handle);
      member->announcement = globals().registry.announce(handle);
      if (usable(nccl_, handle) && member->ask(nccl_))
        members_.push_back(std::move(member));
      else
        globals().registry.withdraw(member->announcement);
    }
    nccl::Result result = open();
    if (result == nccl::kSuccess) result = hello();
    stages_.done(Stages::kMeeting);
    if (result == nccl::kSuccess) result = places();
    for (const StagingKind kind : kStagingKinds)
      if (result == nccl::kSuccess) result = stage(kind);
    if (result == nccl::kSuccess) result = measure();
    stages_.done(Stages::kMeasuring);
    for (auto& m : members_) {
      if (m->staging == nullptr) m->decline(m->refused);
      if (result == nccl::kSuccess && !enter(*m)) result = nccl::kInternalError;
      globals().registry.withdraw(m->announcement);
      // Peers that got further may have the address of the memory, and write there.
      if (result != nccl::kSuccess) (void)m->staging.release();
    }
    struct Last {
      uint64_t id;
      uint32_t all, phase;
    };
    std::vector<Last> last;
    for (auto& m : members_)
      if (m->id != 0) last.push_back({m->id, m->ranks_here, m->meetings});
    members_.clear();  // under the relaxed mode: this may free memory
    // Who leaves starts kernels that wait for its peers; all of this process must be done with freeing by
    // then.
    Rendezvous& rendezvous = globals().rendezvous;
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    for (const Last& l : last) rendezvous.arrive(l.id, 1);
    for (const Last& l : last)
      if (result == nccl::kSuccess)
        rendezvous.wait(l.id, l.all, l.phase, [&] { return Clock::now() > deadline; });
    for (const Last& l : last) rendezvous.leave(l.id, 1, l.all);
    return result;
  }

 private:
  template <class Function>
  void for_pending(Function&& function) {
    for (auto& m : members_)
      if (m->pending) function(*m);
  }

  /// One exchange of all members. An error too if another thread has ended one of them meanwhile
  /// (ncclCommAbort): what came is worth nothing, and the handle may not be used any more.
  template <class MakeRecord>
  nccl::Result exchange_all(MakeRecord&& make_record) {
    const nccl::Result result = exchange(nccl_, members_, make_record);
    if (result != nccl::kSuccess) return result;
    const bool all_live = std::all_of(members_.begin(), members_.end(), [](const auto& m) {
      return globals().registry.announced(m->announcement);
    });
    return all_live ? nccl::kSuccess : nccl::kInternalError;
  }

  nccl::Result open() {
    nccl::Result result = nccl::kSuccess;
    for (auto& m : members_) {
      m->first_of_node = m->rank == 0;
      // Nothing here but the number of ranks may decide: settings and versions are not known to be equal yet.
      if (m->ranks < 2) m->decline("it has one rank");
      if (m->ranks > static_cast<int>(kMaxRanks))
        m->decline(fmt::format("it has {} ranks, and onehop serves 2 to {}", m->ranks, kMaxRanks));
    }
    for_pending([&](Member& m) {
      const Status opened = m.open();
      if (opened) return;
      log::error("rank {} cannot set up onehop: {}", m.rank, opened.reason());
      result = nccl::kUnhandledCudaError;
    });
    return result;
  }

  nccl::Result hello() {
    std::vector<Hello> own;
    for_pending([&](Member& m) { own.push_back(own_hello(nccl_, m)); });
    stages_.done(Stages::kOpening);
    size_t i = 0;
    const nccl::Result result = exchange_all([&](Member&) { return own[i++]; });
    if (result != nccl::kSuccess) return result;
    for_pending([](Member& m) {
      const auto table = m.all_records<Hello>();
      const auto me = table.begin() + m.rank;
      m.first_of_node = std::none_of(table.begin(), me, [&](const Hello& h) { return h.host == me->host; });
      Hash id;
      for (const Hello& h : table) id.add(std::to_string(h.nonce));
      m.id = id.value();
      m.ranks_here = static_cast<uint32_t>(std::count_if(
          table.begin(), table.end(), [](const Hello& h) { return h.process == globals().process; }));
      for (size_t r = 0; r < table.size(); ++r)
        for (size_t other = 0; other < r; ++other) m.shares_gpu |= table[other].gpu == table[r].gpu;
      m.on_this_gpu = static_cast<uint32_t>(
          std::count_if(table.begin(), table.end(), [&](const Hello& h) { return h.gpu == me->gpu; }));
      m.avoids_peers =
          std::any_of(table.begin(), table.end(), [](const Hello& h) { return h.avoids_peers != 0; });
      m.users_unclear = users_are_unclear(table);
      for (const Hello& h : table) m.failed_probes |= h.failed_probes;
      m.takes_fp8 = std::all_of(table.begin(), table.end(), [](const Hello& h) { return h.takes_fp8 != 0; });
      m.decline(verdict_of(table));
      if (!m.declined && shares_plan_file(m, table)) m.planned.emplace();
    });
    return result;
  }

  /// What a plan file is looked up by; only where every rank has the same one.
  nccl::Result places() {
    int version = 0;
    (void)nccl_.GetVersion(&version);
    std::vector<std::vector<Hello>> hellos;
    for (auto& m : members_) {
      m->pending = !m->declined && m->planned;
      if (!m->pending) continue;
      const auto table = m->all_records<Hello>();
      hellos.emplace_back(table.begin(), table.end());
    }
    if (hellos.empty()) return nccl::kSuccess;
    size_t i = 0;
    const nccl::Result result = exchange_all([&](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      return own_place(device_, static_cast<uint32_t>(m.rank), version, hellos[i++]);
    });
    if (result != nccl::kSuccess) return result;
    i = 0;
    for_pending([&](Member& m) {
      const auto table = m.all_records<Place>();
      m.planned = Planned{machine_of(hellos[i], table), most_blocks_of(hellos[i], table)};
      ++i;
    });
    return result;
  }

  /// Tries one kind of staging for every communicator that has none yet and may use it.
  nccl::Result stage(StagingKind kind) {
    for (auto& m : members_) {
      m->pending = false;
      if (m->declined || m->staging != nullptr) continue;
      m->kind = kind;
      const std::optional<std::string> why = why_not(*m, kind, globals().settings.staging);
      Result<Plan> plan = make_plan(settings_with(globals().settings, m->planned.has_value()), kind,
                                    static_cast<uint32_t>(m->ranks));
      if (why || !plan) {
        refuse(*m, why ? *why : plan.reason());
        continue;
      }
      m->plan = *plan;
      m->plan.takes_fp8 = m->takes_fp8;
      m->pending = true;
    }
    nccl::Result result = allocate();
    if (result == nccl::kSuccess) result = map();
    stages_.done(Stages::kStaging);
    if (result == nccl::kSuccess) result = probe();
    stages_.done(Stages::kProbing);
    return result;
  }

  /// From the settings and the table alone, so the same on all ranks.
  static std::optional<std::string> why_not(const Member& m, StagingKind kind, StagingChoice choice) {
    if (m.failed_probes >> static_cast<uint32_t>(kind) & 1)
      return "an earlier communicator of one of these processes found a link that failed";
    if (kind == StagingKind::kPeer) {
      if (choice == StagingChoice::kHost) return "not asked for (ONEHOP_STAGING=host)";
      if (m.avoids_peers) return "NCCL is told to avoid peer access (NCCL_P2P_DISABLE or NCCL_P2P_LEVEL)";
    } else if (choice == StagingChoice::kP2p) {
      return "not asked for (ONEHOP_STAGING=p2p)";
    }
    return std::nullopt;
  }

  /// The kind of staging that was tried does not work for this communicator, which every rank sees alike.
  void refuse(Member& m, const std::string& why) {
    m.pending = false;
    m.socket.reset();
    if (!m.refused.empty()) m.refused += "; ";
    m.refused += fmt::format("staging in {}: {}", name_of(m.kind), why);
    if (m.staging == nullptr) return;
    const CurrentDevice scope(device_, m.device_index);
    m.staging.reset();
  }

  /// Words may still be under way to this memory, now or ever: it is not used for anything else, and goes on
  /// counting.
  static void abandon(Member& m) {
    globals().staging_bytes += m.staging->bytes();
    (void)m.staging.release();
  }

  nccl::Result allocate() {
    const nccl::Result result = exchange_all([this](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      StagingAddress address;
      Progress progress = Progress::of(allocate(m, address));
      progress.address = address;
      return progress;
    });
    if (result != nccl::kSuccess) return result;
    check("has no staging memory");
    return result;
  }

  /// Everything that may fail on this rank alone, besides map().
  Status allocate(Member& m, StagingAddress& address) {
    const Settings& settings = globals().settings;
    m.staging = std::make_unique<Staging>(device_, static_cast<uint32_t>(m.rank), m.kind, m.plan.layout,
                                          settings.timeout_s * 1'000'000'000);
    m.staging->view().islands = m.plan.islands;
    m.staging->view().max_blocks = blocks_beside(m.multiprocessors, m.on_this_gpu);
    Status status;
    if (m.order == nullptr) {
      auto order = std::make_unique<Order>();
      stages_.done(Stages::kStaging);
      status = device_.load_kernels();
      stages_.done(Stages::kLoading);
      if (status) status = order->open(device_, nccl_mixes_graphs());
      // Else the next kind of staging would find it, and go without kernels.
      if (status) m.order = std::move(order);
    }
    if (status) status = m.staging->allocate(m.stream);
    if (!status) return status;
    const bool shared = m.ranks_here < static_cast<uint32_t>(m.ranks);
    const Result<StagingAddress> made = m.staging->address(globals().process, m.device_index, shared);
    if (!made) return made.error();
    address = *made;
    if (shared && (m.kind == StagingKind::kHost || m.users_unclear)) open_socket(m);
    if (m.socket) address.socket = m.socket->address();
    return {};
  }

  /// Without one, peers use /proc.
  static void open_socket(Member& m) {
    Result<PeerSocket> opened = PeerSocket::open();
    if (opened)
      m.socket = std::move(*opened);
    else
      log::debug("rank {} has no socket for its peers: {}", m.rank, opened.reason());
  }

  /// Sends this rank's descriptor, or just a word, to every peer whose socket it can reach, and waits for
  /// theirs. Of all members at once: several ranks of a communicator may live in this process. All of them
  /// have just exchanged a record, so whoever does not answer soon is not going to.
  void meet_peers() {
    for_pending([](Member& m) {
      if (!m.socket) return;
      const auto table = m.all_records<Progress>();
      for (uint32_t peer = 0; peer < table.size(); ++peer) {
        const StagingAddress& address = table[peer].address;
        if (address.process != globals().process && m.socket->address().reaches(address.socket))
          m.socket->expect(peer, address.socket, m.staging->descriptor());
      }
    });
    const auto deadline = Clock::now() + kMeetingDeadline;
    const Pause pause;
    while (Clock::now() < deadline) {
      bool done = true;
      for_pending([&](Member& m) {
        const bool here = !m.socket || m.socket->advance();
        done &= here || !globals().registry.announced(m.announcement);
      });
      if (done) break;
      pause.wait_a_little();
    }
  }

  /// Maps what this rank needs of a peer's, if that is not another user's.
  Status map(Member& m, uint32_t peer) {
    const StagingAddress& address = m.all_records<Progress>()[peer].address;
    Fd descriptor;
    if (address.process != globals().process) {
      std::optional<Result<Fd>> came = m.socket ? m.socket->take(peer) : std::nullopt;
      if (came && !*came) return came->error();
      if (came) descriptor = std::move(**came);
      if (!came && m.users_unclear && m.kind == StagingKind::kPeer)
        return Error{
            fmt::format("rank {} is in another user namespace, and no socket tells which user it is", peer)};
    }
    return m.staging->map(peer, address, globals().process, m.device_index, std::move(descriptor));
  }

  /// The addresses were exchanged after the memory was filled, in the order of each private stream: whoever
  /// has an address may write there. The exchange in this step tells every rank that all have mapped what
  /// they need.
  nccl::Result map() {
    meet_peers();
    const nccl::Result result = exchange_all([this](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      Status mapped;
      const auto ranks = static_cast<uint32_t>(m.ranks);
      for (uint32_t peer = 0; peer < ranks && mapped; ++peer)
        if (m.plan.needs(static_cast<uint32_t>(m.rank), peer)) mapped = map(m, peer);
      m.socket.reset();
      return Progress::of(mapped);
    });
    if (result != nccl::kSuccess) return result;
    check("cannot reach the staging memory of a peer");
    for_pending([](Member& m) { m.staging->close_name(); });
    return result;
  }

  /// All that belongs to a communicator is enqueued before anything is waited for: several of its ranks may
  /// live in this process.
  nccl::Result probe() {
    std::vector<std::unique_ptr<Probe>> probes;
    std::vector<Status> outcomes;
    for_pending([&](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      probes.push_back(std::make_unique<Probe>(device_, *m.staging, m.plan));
      outcomes.push_back(probes.back()->start(m.stream));
    });
    nccl::Result result = finish_exchange(nccl_, members_);
    if (result != nccl::kSuccess) return result;
    size_t i = 0;
    for_pending([&](Member&) {
      if (outcomes[i]) outcomes[i] = probes[i]->verdict();
      ++i;
    });
    i = 0;
    result = exchange_all([&](Member&) { return Progress::of(outcomes[i++]); });
    if (result != nccl::kSuccess) return result;
    for_pending([&](Member& m) {
      const auto why = first_failure(m.all_records<Progress>(), "has a link that failed");
      if (!why) return;
      abandon(m);
      globals().failed_probes |= 1u << static_cast<uint32_t>(m.kind);
      refuse(m, *why);
    });
    return result;
  }

  nccl::Result measure() {
    const Settings& settings = globals().settings;
    const bool wanted = settings.measure != MeasureChoice::kOff && settings.algo == Algo::kAuto;
    for (auto& m : members_) {
      m->pending = m->staging != nullptr && !m->declined;
      if (m->pending) plan_from_file(*m);
      if (m->from_file && m->plan.is_empty()) {
        const CurrentDevice scope(device_, m->device_index);
        m->staging.reset();
        m->decline("the plan file " + settings.plan + " leaves every call to NCCL");
      }
      m->pending = m->pending && wanted && !m->from_file;
      if (!m->pending) continue;
      if (!device_.has_times()) m->not_measured = "this is the CPU stand-in";
      // NCCL's kernels and onehop's, of several ranks, may not all fit on one GPU; and what is measured there
      // says nothing about links.
      if (m->shares_gpu) m->not_measured = "ranks share a GPU";
      m->pending = !m->not_measured;
    }
    if (!wanted) return nccl::kSuccess;
    std::vector<Member*> measured;
    for_pending([&](Member& m) { measured.push_back(&m); });
    const nccl::Result result = onehop::measure(nccl_, device_, members_);
    for (Member* m : measured) {
      const CurrentDevice scope(device_, m->device_index);
      if (m->not_measured) {
        abandon(*m);
        m->decline("it could not be measured: " + *m->not_measured);
      } else if (m->plan.is_empty()) {
        m->staging.reset();
        m->decline("NCCL is as fast at every size that was measured");
      }
    }
    return result;
  }

  /// After an exchange of Progress: whoever did not get through makes this kind of staging unusable.
  void check(const char* what) {
    for_pending([&](Member& m) {
      if (const auto why = first_failure(m.all_records<Progress>(), what)) refuse(m, *why);
    });
  }

  /// False if another thread has ended the communicator.
  bool enter(Member& m) {
    Globals& g = globals();
    if (m.declined) {
      if (m.first_of_node) log::info("OFF for a communicator of {} ranks: {}", m.ranks, *m.declined);
      ++g.communicators_off;
      auto off = std::make_unique<Communicator>(*m.declined);
      off->list(facts(m, RecordState::kOff, "", *m.declined));
      return g.registry.insert_announced(m.announcement, off);
    }
    std::string what = describe(m.plan, m.timings);
    if (m.from_file) what += fmt::format(" (plan {})", globals().settings.plan);
    if (m.not_measured) what += fmt::format(" (not measured: {})", *m.not_measured);
    if (m.first_of_node)
      log::info(
          "ON for a communicator of {} ranks: {}; all types{} and built-in operators; staging in {}, {:.1f} "
          "MiB per "
          "rank{}{}; {}",
          m.ranks, what, m.plan.takes_fp8 ? "" : " but fp8", name_of(m.kind),
          static_cast<double>(m.staging->bytes()) / (1 << 20), m.refused.empty() ? "" : ", because not ",
          m.refused.empty() ? "" : m.refused, stages_.text());
    ++g.communicators_on;
    StatisticsSnapshot::Listed said = facts(m, RecordState::kOn, what, "");
    said.staging_bytes = m.staging->bytes();
    auto on = std::make_unique<Communicator>(device_, m.device_index, m.plan, std::move(m.staging),
                                             std::move(m.order));
    on->list(said);
    if (m.planned) on->allow_plans(std::move(*m.planned));
    if (g.registry.insert_announced(m.announcement, on)) return true;
    on->leave_statistics();
    (void)on.release();  // as after any abort: peers may write to its memory
    return false;
  }

  StatisticsSnapshot::Listed facts(const Member& m, RecordState state, const std::string& plan,
                                   const std::string& reason) const {
    return {.state = state,
            .rank = m.rank,
            .ranks = m.ranks,
            .handle = reinterpret_cast<uintptr_t>(m.handle),
            .meeting_ns = static_cast<uint64_t>(stages_.meeting().count()),
            .set_up_ns = static_cast<uint64_t>(stages_.own().count()),
            .plan = plan,
            .reason = reason};
  }

  const nccl::Functions& nccl_;
  Device& device_;
  Stages stages_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace

nccl::Result set_up(Image& image, std::span<const nccl::Comm> comms) noexcept {
  try {
    const Result<Device*> device = image.device();
    if (device) return SetUp(image.original, **device).run(comms);
    // Built without CUDA, or against another stand-in: so on every rank that runs this object.
    log::warn("OFF for {}: {}", image.path, device.reason());
    for (const nccl::Comm handle : comms)
      globals().registry.insert(handle, std::make_unique<Communicator>(device.reason()));
    return nccl::kSuccess;
  } catch (const std::exception& e) {
    log::error("set-up failed: {}", e.what());
    return nccl::kSystemError;
  }
}

}  // namespace onehop
