#include "plugin/setup/set_up.hpp"

#include <algorithm>
#include <chrono>

#include "plugin/communicator.hpp"
#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/nccl_switches.hpp"
#include "plugin/setup/exchange.hpp"
#include "plugin/setup/own_hello.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop {
namespace {

using Clock = std::chrono::steady_clock;

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
    if (result == nccl::kSuccess) result = allocate();
    if (result == nccl::kSuccess) result = map();
    for (auto& m : members_) {
      if (result == nccl::kSuccess && !enter(*m)) result = nccl::kInternalError;
      globals().registry.withdraw(m->announcement);
      // Peers that got further may have the address of the memory, and write there.
      if (result != nccl::kSuccess) (void)m->staging.release();
    }
    members_.clear();  // under the relaxed mode: this may free memory
    return result;
  }

 private:
  template <class Function>
  void for_undecided(Function&& function) {
    for (auto& m : members_)
      if (!m->declined) function(*m);
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
      if (m->ranks < 2) m->decline("it has one rank");
      if (m->ranks > static_cast<int>(kMaxRanks))
        m->decline(fmt::format("it has {} ranks, and onehop serves 2 to {}", m->ranks, kMaxRanks));
    }
    for_undecided([&](Member& m) {
      const Status opened = m.open();
      if (opened) return;
      log::error("rank {} cannot set up onehop: {}", m.rank, opened.reason());
      result = nccl::kUnhandledCudaError;
    });
    return result;
  }

  nccl::Result hello() {
    const nccl::Result result = exchange_all([this](Member& m) { return own_hello(nccl_, m); });
    if (result != nccl::kSuccess) return result;
    for_undecided([](Member& m) {
      const auto table = m.all_records<Hello>();
      const auto me = table.begin() + m.rank;
      m.first_of_node = std::none_of(table.begin(), me, [&](const Hello& h) { return h.host == me->host; });
      m.takes_fp8 = std::all_of(table.begin(), table.end(), [](const Hello& h) { return h.takes_fp8 != 0; });
      m.decline(verdict_of(table));
    });
    return result;
  }

  nccl::Result allocate() {
    const nccl::Result result = exchange_all([this](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      InboxAddress address;
      Progress progress = Progress::of(allocate(m, address));
      progress.address = address;
      return progress;
    });
    if (result != nccl::kSuccess) return result;
    for_undecided(
        [](Member& m) { m.decline(first_failure(m.all_records<Progress>(), "has no staging memory")); });
    return result;
  }

  /// Everything that may fail on this rank alone, besides map().
  Status allocate(Member& m, InboxAddress& address) {
    const Settings& settings = globals().settings;
    const auto ranks = static_cast<uint32_t>(m.ranks);
    const InboxLayout layout{ranks, capacity_for(make_plan(settings, ranks))};
    m.staging = std::make_unique<Staging>(device_, static_cast<uint32_t>(m.rank), layout,
                                          settings.timeout_s * 1'000'000'000);
    m.order = std::make_unique<Order>();
    Status status = device_.load_kernels();
    if (status) status = m.order->open(device_, nccl_mixes_graphs());
    if (status) status = m.staging->allocate(m.stream);
    if (!status) return status;
    const auto table = m.all_records<Hello>();
    const bool shared = std::any_of(table.begin(), table.end(),
                                    [](const Hello& h) { return h.process != globals().process; });
    const Result<InboxAddress> made = m.staging->address(globals().process, m.device_index, shared);
    if (!made) return made.error();
    address = *made;
    return {};
  }

  /// The addresses were exchanged after the inboxes were filled, in the order of each private stream: whoever
  /// has an address may write there. The exchange in this step tells every rank that all have mapped what
  /// they need.
  nccl::Result map() {
    const nccl::Result result = exchange_all([this](Member& m) {
      const CurrentDevice scope(device_, m.device_index);
      const auto table = m.all_records<Progress>();
      Status mapped;
      for (int peer = 0; peer < m.ranks && mapped; ++peer)
        if (peer != m.rank)
          mapped = m.staging->map(static_cast<uint32_t>(peer), table[static_cast<size_t>(peer)].address,
                                  globals().process, m.device_index);
      return Progress::of(mapped);
    });
    if (result != nccl::kSuccess) return result;
    for_undecided([](Member& m) {
      m.decline(first_failure(m.all_records<Progress>(), "cannot reach the staging memory of a peer"));
    });
    return result;
  }

  /// False if another thread has ended the communicator.
  bool enter(Member& m) {
    Globals& g = globals();
    if (m.declined) {
      if (m.first_of_node) log::info("OFF for a communicator of {} ranks: {}", m.ranks, *m.declined);
      ++g.communicators_off;
      auto off = std::make_unique<Communicator>(*m.declined);
      return g.registry.insert_announced(m.announcement, off);
    }
    Plan plan = make_plan(g.settings, static_cast<uint32_t>(m.ranks));
    plan.takes_fp8 = m.takes_fp8;
    if (m.first_of_node) {
      log::info(
          "ON for a communicator of {} ranks: one-shot push for calls of up to {} bytes{}, all types{} and "
          "built-in "
          "operators; staging in device memory, {:.1f} MiB per rank; set up in {:.1f} ms",
          m.ranks, plan.max_bytes,
          plan.max_bytes < g.settings.max_bytes
              ? " (ONEHOP_MAX_BYTES asks for more than the staging memory holds)"
              : "",
          plan.takes_fp8 ? "" : " but fp8", static_cast<double>(m.staging->bytes()) / (1 << 20),
          std::chrono::duration<double, std::milli>(Clock::now() - start_).count());
    }
    ++g.communicators_on;
    auto on = std::make_unique<Communicator>(device_, m.device_index, plan, std::move(m.staging),
                                             std::move(m.order));
    if (g.registry.insert_announced(m.announcement, on)) return true;
    (void)on.release();  // as after any abort: peers may write to its memory
    return false;
  }

  const nccl::Functions& nccl_;
  Device& device_;
  const Clock::time_point start_ = Clock::now();
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
