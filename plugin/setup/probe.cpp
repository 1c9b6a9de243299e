#include "plugin/setup/probe.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace onehop {
namespace {

/// Word j of the input of `rank` in case `number`. Floating-point inputs are whole numbers, small enough that
/// their sum is exact.
uint32_t pattern(uint32_t rank, uint32_t number, uint32_t j) {
  uint32_t x = rank * 0x9E3779B9u + number * 0x85EBCA6Bu + j * 0xC2B2AE35u + 1;
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}
float small(uint32_t x) {
  return static_cast<float>(x >> 12);
}

uint32_t input(Element element, uint32_t rank, uint32_t number, uint32_t j) {
  const uint32_t x = pattern(rank, number, j);
  if (element == Element::kUint32) return x;
  const float value = small(x);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

uint32_t sum(Element element, const std::vector<uint32_t>& ranks, uint32_t number, uint32_t j) {
  if (element == Element::kUint32) {
    uint32_t whole = 0;
    for (const uint32_t rank : ranks) whole += pattern(rank, number, j);
    return whole;
  }
  float real = 0;
  for (const uint32_t rank : ranks) real += small(pattern(rank, number, j));
  uint32_t bits;
  std::memcpy(&bits, &real, sizeof(bits));
  return bits;
}

constexpr uint32_t kWordsPerPack = sizeof(Pack) / sizeof(uint32_t);

}  // namespace

int probe_partner(uint32_t rank, uint32_t ranks, uint32_t round) {
  // The circle method: the last of an even number stands still, the others turn about it.
  const uint32_t turning = probe_rounds(ranks);
  uint32_t partner;
  if (rank == turning) {
    partner = round * (turning + 1) / 2 % turning;  // the one that would meet itself: 2 * partner = round
  } else {
    partner = (round + turning - rank) % turning;
    if (partner == rank) partner = turning;
  }
  return partner < ranks ? static_cast<int>(partner) : -1;
}

Probe::~Probe() {
  if (pinned_ != nullptr) device_.release_pinned(pinned_);
}

void Probe::add_cases(const CommView& view, const std::vector<uint32_t>& ranks, Method method, uint32_t packs,
                      uint32_t& number) {
  // More operations than slots, so that each slot is used, emptied and used again.
  constexpr uint32_t kRepeats = 3;
  for (uint32_t repeat = 0; repeat < kRepeats; ++repeat) {
    for (const Element element : {Element::kFloat32, Element::kUint32}) {
      Operation operation;
      operation.element = element;
      operation.method = method;
      operation.count = std::min(packs, largest_operation(method, view.layout, word_kind(element),
                                                          view.islands, wide_packs(element))) *
                        kWordsPerPack;
      cases_.push_back({view, operation, ranks, number++});
      words_ += operation.count;
    }
  }
}

Status Probe::start(Stream stream) {
  const CommView& all = staging_.view();
  std::vector<uint32_t> everyone;
  for (uint32_t r = 0; r < all.ranks; ++r) everyone.push_back(r);
  constexpr uint32_t kPacks = 256;
  CommView probed = all;
  probed.budget_ns = kProbeDeadlineNs;
  uint32_t number = 0;
  for (uint32_t c = 0; c < plan_.candidate_count; ++c)
    add_cases(probed, everyone, plan_.candidates[c], kPacks, number);
  for (uint32_t round = 0; round < probe_rounds(all.ranks); ++round) {
    const int partner = probe_partner(all.rank, all.ranks, round);
    if (partner < 0 || !plan_.needs(all.rank, static_cast<uint32_t>(partner))) continue;
    const auto peer = static_cast<uint32_t>(partner);
    Result<CommView> pair = staging_.pair_view(peer, round, stream);
    if (!pair) return pair.error();
    pair->budget_ns = kProbeDeadlineNs;
    const std::vector<uint32_t> two = {std::min(all.rank, peer), std::max(all.rank, peer)};
    number = 1000 * (round + 1);  // some ranks have had fewer pairs
    if (pair->layout.inbox != 0) add_cases(*pair, two, Method::kOneShot, Staging::kPairPacks, number);
    if (pair->layout.outbox != 0) add_cases(*pair, two, Method::kOneShotPull, Staging::kPairPacks, number);
  }

  Result<void*> pinned = device_.allocate_pinned(2 * words_ * sizeof(uint32_t));
  if (!pinned) return pinned.error();
  pinned_ = *pinned;
  auto* from = static_cast<uint32_t*>(pinned_);
  auto* to = from + words_;
  for (Case& c : cases_) {
    for (uint32_t j = 0; j < c.operation.count; ++j)
      from[j] = input(c.operation.element, all.rank, c.number, j);
    std::memset(to, 0x5A, c.operation.count * sizeof(uint32_t));
    c.operation.send = from;
    c.operation.receive = to;
    from += c.operation.count;
    to += c.operation.count;
  }
  for (const Case& c : cases_)
    if (Status launched = device_.launch(c.view, c.operation, stream); !launched) return launched;
  return {};
}

Status Probe::verdict() const {
  const Control& control = *staging_.view().control;
  const auto stop = static_cast<Stop>(std::atomic_ref(const_cast<uint32_t&>(control.stop)).load());
  if (stop == Stop::kTimeout)
    return Error{"in the probe, words did not arrive within " + std::to_string(kProbeDeadlineNs / 1'000'000) +
                 " ms"};
  if (stop != Stop::kNone) return Error{"the communicator was aborted during the probe"};
  for (const Case& c : cases_) {
    const auto* result = static_cast<const uint32_t*>(c.operation.receive);
    for (uint32_t j = 0; j < c.operation.count; ++j) {
      if (result[j] == sum(c.operation.element, c.ranks, c.number, j)) continue;
      std::string whom = "all ranks";
      if (c.ranks.size() == 2 && staging_.view().ranks != 2)
        whom = "rank " + std::to_string(c.ranks[0] == staging_.view().rank ? c.ranks[1] : c.ranks[0]);
      return Error{"in the probe, words from " + whom + " arrived changed"};
    }
  }
  return {};
}

}  // namespace onehop
