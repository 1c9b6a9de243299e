#include "tools/onehop/tune_steps.hpp"

#include <algorithm>

namespace onehop::tune {
namespace {

constexpr uint32_t kBlocks[] = {1, 2, 4, 8, 16, 32}, kWorkers[] = {64, 128, 256};
constexpr uint32_t kMostPacksOfAWorker = 16;
constexpr size_t kKept = 3;  ///< of each size, for the second round
/// A geometry must take at most this part of the time of the one that onehop would choose by itself: the best
/// of many is partly luck.
constexpr double kWorthIt = 0.97;

CommView view_of(const Choices& choices) {
  CommView view;
  view.ranks = choices.ranks;
  view.islands = make_islands(choices.islands.data(), choices.ranks);
  return view;
}

/// That an operation of this size would use to the full.
std::vector<Geometry> geometries(const Choices& choices, Method method, uint64_t bytes) {
  std::vector<Geometry> all = {{0, 0}};
  const CommView view = view_of(choices);
  const auto packs = static_cast<uint32_t>((bytes + sizeof(Pack) - 1) / sizeof(Pack));
  const uint32_t items = items_of(method, packs, view);
  const Geometry usual = geometry_for(method, packs, view);
  for (const uint32_t workers : kWorkers)
    for (const uint32_t blocks : kBlocks) {
      if (blocks > choices.most_blocks || spread(items, workers, blocks) != Geometry{blocks, workers})
        continue;
      if (Geometry{blocks, workers} == usual || items > blocks * workers * kMostPacksOfAWorker) continue;
      all.push_back({blocks, workers});
    }
  return all;
}

/// Those of `round` at this size, the fastest against NCCL first.
std::vector<Measured> ranking(const std::vector<Measured>& results, int round, uint64_t bytes) {
  std::vector<Measured> all;
  for (const Measured& m : results)
    if (m.step.round == round && m.step.bytes == bytes && m.counts()) all.push_back(m);
  std::stable_sort(all.begin(), all.end(),
                   [](const Measured& a, const Measured& b) { return a.us / a.nccl_us < b.us / b.nccl_us; });
  return all;
}

}  // namespace

std::string describe(const Step& step) {
  std::string text = std::string(name_of(step.method)) + " at " + std::to_string(step.bytes) + " bytes";
  if (step.most.blocks != 0)
    text += ", " + std::to_string(step.most.blocks) + " x " + std::to_string(step.most.workers);
  return text;
}

std::vector<Step> first_round(const Choices& choices) {
  std::vector<Step> steps;
  for (const uint64_t bytes : choices.sizes)
    for (const Method method : choices.methods)
      for (const Geometry& most : geometries(choices, method, bytes))
        steps.push_back({1, bytes, method, most});
  return steps;
}

std::vector<Step> second_round(const Choices& choices, const std::vector<Measured>& results) {
  std::vector<Step> steps;
  const auto add = [&](Step step) {
    step.round = 2;
    if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
  };
  for (const uint64_t bytes : choices.sizes) {
    const std::vector<Measured> best = ranking(results, 1, bytes);
    for (size_t i = 0; i < best.size() && i < kKept; ++i) {
      add(best[i].step);
      Step usual = best[i].step;
      usual.most = {0, 0};
      add(usual);
    }
  }
  return steps;
}

FilePlan best_plan(const Choices& choices, const std::vector<Measured>& results) {
  FilePlan plan;
  uint64_t below = 0;
  for (size_t i = 0; i < choices.sizes.size(); ++i) {
    const uint64_t bytes = choices.sizes[i];
    const std::vector<Measured> best = ranking(results, 2, bytes);
    FilePlan::Range range{bytes, std::nullopt, {0, 0}, bytes, 0, 1};
    if (!best.empty()) {
      const Measured* winner = &best[0];
      for (const Measured& m : best)
        if (m.step.method == best[0].step.method && m.step.most.blocks == 0 &&
            best[0].us / best[0].nccl_us > kWorthIt * (m.us / m.nccl_us))
          winner = &m;
      range.nccl_us = winner->nccl_us;
      if (winner->us <= choices.margin * winner->nccl_us) {
        range.method = winner->step.method;
        range.most = winner->step.most;
        range.us = winner->us;
      }
    }
    if (!plan.ranges.empty()) {
      FilePlan::Range& last = plan.ranges.back();
      if (last.method == range.method && last.most == range.most) {
        last = range;
        below = bytes;
        continue;
      }
      // What lies between a size that NCCL wins and one that it loses is NCCL's.
      if (!last.method && bytes > below + 1) last.up_to = bytes - 1;
    }
    plan.ranges.push_back(range);
    below = bytes;
  }
  plan.islands = choices.islands;
  return plan;
}

}  // namespace onehop::tune
