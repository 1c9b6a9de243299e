#include "plugin/plan.hpp"

#include <algorithm>

namespace onehop {

size_t bytes_of(nccl::DataType type) {
  switch (type) {
    case nccl::kInt8:
    case nccl::kUint8:
    case nccl::kFloat8e4m3:
    case nccl::kFloat8e5m2:
      return 1;
    case nccl::kFloat16:
    case nccl::kBfloat16:
      return 2;
    case nccl::kInt32:
    case nccl::kUint32:
    case nccl::kFloat32:
      return 4;
    case nccl::kInt64:
    case nccl::kUint64:
    case nccl::kFloat64:
      return 8;
  }
  return 0;
}

std::optional<Element> element_of(nccl::DataType type) {
  static_assert(static_cast<int>(Element::kInt8) == nccl::kInt8 &&
                static_cast<int>(Element::kUint64) == nccl::kUint64 &&
                static_cast<int>(Element::kFloat16) == nccl::kFloat16 &&
                static_cast<int>(Element::kBfloat16) == nccl::kBfloat16 &&
                static_cast<int>(Element::kFloat8e5m2) == nccl::kFloat8e5m2);
  if (bytes_of(type) == 0) return std::nullopt;
  return static_cast<Element>(type);
}

std::optional<Reduction> reduction_of(nccl::RedOp op) {
  static_assert(
      static_cast<int>(Reduction::kSum) == nccl::kSum && static_cast<int>(Reduction::kProd) == nccl::kProd &&
      static_cast<int>(Reduction::kMax) == nccl::kMax && static_cast<int>(Reduction::kMin) == nccl::kMin &&
      static_cast<int>(Reduction::kAvg) == nccl::kAvg);
  if (op < nccl::kSum || op > nccl::kAvg) return std::nullopt;
  return static_cast<Reduction>(op);
}

namespace {

/// The method that a pinned ONEHOP_ALGO means with this kind of staging, if any.
std::optional<Method> pinned_method(Algo algo, StagingKind kind) {
  const bool host = kind == StagingKind::kHost;
  const auto in_device_memory = [&](Method method) {
    return host ? std::nullopt : std::optional<Method>(method);
  };
  switch (algo) {
    case Algo::kAuto:
      return std::nullopt;
    case Algo::kOneShot:
      return host ? Method::kOneShotPull : Method::kOneShot;
    case Algo::kTwoShot:
      return host ? Method::kTwoShotPull : Method::kTwoShot;
    case Algo::kOneShotPush:
      return in_device_memory(Method::kOneShot);
    case Algo::kTwoShotPush:
      return in_device_memory(Method::kTwoShot);
    case Algo::kOneShotStaged:
      return in_device_memory(Method::kOneShotStaged);
    case Algo::kTwoShotStaged:
      return in_device_memory(Method::kTwoShotStaged);
    case Algo::kOneShotPull:
      return Method::kOneShotPull;
    case Algo::kTwoShotPull:
      return Method::kTwoShotPull;
    case Algo::kIslands:
      return in_device_memory(Method::kIslands);
  }
  return std::nullopt;
}

/// The largest call for which one hop is likely to beat two, where nothing was measured: on PCIe the bytes of
/// one-shot, (ranks - 1) times the call's, soon take longer than a second hop.
uint64_t one_shot_limit(StagingKind kind, uint32_t ranks) {
  if (ranks == 2) return UINT64_MAX;
  const bool few = ranks <= 4;
  if (kind == StagingKind::kHost) return few ? 16 << 10 : 8 << 10;
  return few ? 128 << 10 : 64 << 10;
}

/// Packs that a method needs in a region of the inbox, or in a slot of the outbox, for `packs` of payload as
/// sentinel words.
uint32_t needs(Method method, uint32_t packs, uint32_t ranks, const Islands& islands) {
  constexpr uint32_t kWide = 2;  // of the types that are common
  const uint32_t share = (packs + ranks - 1) / ranks;
  switch (method) {
    case Method::kOneShot:
    case Method::kOneShotStaged:
    case Method::kOneShotPull:
      return packs;
    case Method::kTwoShot:
    case Method::kTwoShotStaged:
      return 2 * share;
    case Method::kTwoShotPull:
      return ranks * share;
    case Method::kIslands:
      return (packs + islands.smallest - 1) / islands.smallest * (2 + kWide * (islands.runs - 1u));
  }
  return 0;
}

/// A method and the largest call that it is likely to be good for.
struct Candidate {
  Method method;
  uint64_t max_bytes;
};

std::vector<Candidate> candidates_for(StagingKind kind, uint32_t ranks, uint64_t max) {
  if (ranks > kMaxHopRanks) return {{Method::kIslands, max}};
  const uint64_t one_hop = ranks == 2 ? max : std::min<uint64_t>(max, 256 << 10);
  std::vector<Candidate> all;
  if (kind == StagingKind::kPeer) all.push_back({Method::kOneShot, one_hop});
  all.push_back({Method::kOneShotPull, one_hop});
  // Where two-shot sends as much as one-shot, and there is nothing to stage. Through host memory a second hop
  // pays nevertheless, from 512 KiB on (docs/results).
  if (ranks == 2 && kind == StagingKind::kPeer) return all;
  if (kind == StagingKind::kPeer) all.push_back({Method::kTwoShot, max});
  all.push_back({Method::kTwoShotPull, max});
  if (kind == StagingKind::kHost) return all;
  all.push_back({Method::kOneShotStaged, one_hop});
  all.push_back({Method::kTwoShotStaged, max});
  if (ranks >= 4) all.push_back({Method::kIslands, max});
  return all;
}

/// Enough for the largest call of each candidate in one operation, or as much of that as the budget holds.
Layout layout_for(const std::vector<Candidate>& candidates, const Islands& islands, uint32_t ranks) {
  // At least one pack of payload per operation, of every type and with every partition.
  constexpr uint32_t kFewest = 128;
  static_assert(kFewest >= 2 * (2 + kMaxWidePacks * (kMaxRanks - 1)));
  Layout layout{ranks, 0, 0};
  for (const auto& [method, bytes] : candidates) {
    const uint32_t wanted =
        needs(method, static_cast<uint32_t>((bytes + sizeof(Pack) - 1) / sizeof(Pack)), ranks, islands);
    uint32_t& packs = is_pull(method) ? layout.outbox : layout.inbox;
    packs = std::max({packs, wanted, kFewest});
  }
  constexpr uint32_t kAlign = 8;  // regions begin on whole cache lines
  const auto limit = [&](uint32_t& packs, uint64_t budget, size_t bytes_of_one) {
    const auto fits = static_cast<uint32_t>(budget / bytes_of_one);
    packs = packs >= fits ? fits / kAlign * kAlign : (packs + kAlign - 1) / kAlign * kAlign;
  };
  const uint64_t budget = kStagingBudget - sizeof(State), for_outbox = layout.inbox == 0    ? budget
                                                                       : layout.outbox == 0 ? 0
                                                                                            : budget / 2;
  constexpr uint32_t kUnit = 16 * kMaxRanks;  // shadows of slices are rounded down
  const auto cost = [](const Layout& l) { return l.bytes() + l.shadow_bytes(); };
  limit(layout.outbox, for_outbox, cost(Layout{ranks, 0, kUnit}) / kUnit + 1);
  limit(layout.inbox, budget - cost(Layout{ranks, 0, layout.outbox}), cost(Layout{ranks, 1, 0}));
  return layout;
}

}  // namespace

void Plan::add(uint64_t up_to, std::optional<Method> method, Geometry most) {
  if (up_to <= max_bytes()) return;
  if (count > 0 && ranges[count - 1].method == method && ranges[count - 1].most == most)
    ranges[count - 1].max_bytes = up_to;
  else if (count < ranges.size())
    ranges[count++] = {up_to, method, most};
}

bool Plan::is_empty() const {
  for (uint32_t i = 0; i < count; ++i)
    if (ranges[i].method) return false;
  return true;
}

size_t Plan::piece(Method method, Element element) const {
  const size_t packs = largest_operation(method, layout, word_kind(element), islands, wide_packs(element));
  return packs * (sizeof(Pack) / element_size(element));
}

bool Plan::needs(uint32_t rank, uint32_t peer) const {
  // A GPU can map few peers; islands keep to their partners.
  for (uint32_t i = 0; i < candidate_count; ++i)
    if (candidates[i] != Method::kIslands) return rank != peer;
  return rank != peer && are_partners(islands, rank, peer);
}

Result<Plan> make_plan(const Settings& settings, StagingKind kind, uint32_t ranks) {
  if (ranks < 2 || ranks > kMaxRanks)
    return Error{"it has " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                 ", and onehop serves 2 to " + std::to_string(kMaxRanks)};
  Plan plan;
  plan.islands = settings.islands.size() == ranks ? make_islands(settings.islands.data(), ranks)
                                                  : equal_islands(ranks, 2);
  const uint64_t max = settings.max_bytes;
  std::optional<Method> only = pinned_method(settings.algo, kind);
  if (settings.algo != Algo::kAuto && !only)
    return Error{"the method that ONEHOP_ALGO asks for needs staging in device memory"};
  if (settings.algo == Algo::kAuto && ranks > kMaxHopRanks && kind == StagingKind::kPeer)
    only = Method::kIslands;
  if (ranks > kMaxHopRanks && only != Method::kIslands)
    return Error{std::string(only ? name_of(*only) : "staging in host memory") + " serves up to " +
                 std::to_string(kMaxHopRanks) + " ranks, and it has " + std::to_string(ranks)};
  if (max == 0) return Error{"ONEHOP_MAX_BYTES=0"};
  std::vector<Candidate> candidates;
  const bool host = kind == StagingKind::kHost;
  const Method one_hop = host ? Method::kOneShotPull : Method::kOneShot,
               two_hops = host ? Method::kTwoShotPull : Method::kTwoShot;
  if (only) {
    plan.add(max, *only);
    candidates.push_back({*only, max});
  } else {
    plan.add(std::min(max, one_shot_limit(kind, ranks)), one_hop);
    plan.add(max, two_hops);
    if (settings.measure != MeasureChoice::kOff)
      candidates = candidates_for(kind, ranks, max);
    else
      for (uint32_t i = 0; i < plan.count; ++i)
        candidates.push_back({*plan.ranges[i].method, plan.ranges[i].max_bytes});
  }
  for (const Candidate& candidate : candidates) plan.candidates[plan.candidate_count++] = candidate.method;
  plan.layout = layout_for(candidates, plan.islands, ranks);
  return plan;
}

std::string describe(const Plan::Range& range) {
  return std::string(range.method ? name_of(*range.method) : "NCCL") + " up to " +
         std::to_string(range.max_bytes) + " bytes";
}

std::string describe(const Plan& plan) {
  std::string text;
  for (uint32_t i = 0; i < plan.count; ++i) {
    if (i > 0) text += ", ";
    text += describe(plan.ranges[i]);
  }
  return text;
}

Decision decide(const SharedFacts& call, const Plan& plan) {
  if (call.count == 0) return {{}, Pass::kEmpty};
  const std::optional<Element> element = element_of(call.type);
  if (!element) return {{}, Pass::kType};
  const bool fp8 = *element == Element::kFloat8e4m3 || *element == Element::kFloat8e5m2;
  if (fp8 && !plan.takes_fp8) return {{}, Pass::kType};
  const std::optional<Reduction> reduction = reduction_of(call.op);
  if (!reduction) return {{}, Pass::kOperator};
  const size_t size = element_size(*element);
  if (call.count > plan.max_bytes() / size) return {{}, Pass::kSize};
  // What was measured was measured with sentinel words. Flag words are twice as many bytes on the link.
  const uint64_t bytes = call.count * size * Layout::expansion(word_kind(*element));
  uint32_t range = 0;
  while (range + 1 < plan.count && bytes > plan.ranges[range].max_bytes) ++range;
  const std::optional<Method> method = plan.ranges[range].method;
  if (!method) return {{}, Pass::kSlower};
  return {Served{*element, *reduction, *method, plan.piece(*method, *element), plan.ranges[range].most}, {}};
}

bool starts_set_up(const SharedFacts& call) {
  constexpr size_t kLargestTrigger = 8 << 20;
  return call.count > 0 && call.count <= kLargestTrigger;
}

}  // namespace onehop
