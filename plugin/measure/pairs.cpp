#include "plugin/measure/pairs.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>
#include <utility>

namespace onehop {
namespace {

/// What the link between two ranks costs: the transfer in the slower direction, under load. Of a time that is
/// hardly longer than the latency, a part that the noise of either cannot make vanish.
double cost(const Pairs& pairs, uint32_t a, uint32_t b) {
  double slowest = 0;
  for (const Pairs::Load load : {Pairs::kAlone, Pairs::kTogether})
    for (const auto& [to, from] : {std::pair{a, b}, std::pair{b, a}}) {
      const double us = pairs.at(Pairs::kWritten, load, to, from);
      slowest = std::max({slowest, us / 5, us - pairs.at(Pairs::kWritten, Pairs::kLatency, to, from)});
    }
  return slowest;
}

/// Ranks that are connected by links that cost at most `most` are of one island.
std::array<uint8_t, kMaxRanks> connected(const Pairs& pairs, double most) {
  constexpr uint8_t kNone = 0xFF;
  std::array<uint8_t, kMaxRanks> island;
  island.fill(kNone);
  uint8_t count = 0;
  for (uint32_t first = 0; first < pairs.ranks; ++first) {
    if (island[first] != kNone) continue;
    island[first] = count;
    for (bool grows = true; grows;) {
      grows = false;
      for (uint32_t a = 0; a < pairs.ranks; ++a)
        for (uint32_t b = 0; b < pairs.ranks; ++b)
          if (island[a] == count && island[b] == kNone && cost(pairs, a, b) <= most) {
            island[b] = count;
            grows = true;
          }
    }
    ++count;
  }
  return island;
}

}  // namespace

double Pairs::bandwidth(Way way, Load load, uint32_t receiver, uint32_t peer) const {
  const double transfer = at(way, load, receiver, peer) - at(way, kLatency, receiver, peer);
  return transfer > 0 ? static_cast<double>(bytes) / transfer : 0;
}

std::optional<Islands> find_islands(const Pairs& pairs) {
  std::set<double> costs;
  for (uint32_t a = 0; a < pairs.ranks; ++a)
    for (uint32_t b = 0; b < a; ++b) costs.insert(cost(pairs, a, b));
  std::optional<Islands> found;
  double furthest = kApart;
  for (const double most : costs) {
    const std::array<uint8_t, kMaxRanks> island = connected(pairs, most);
    double inside = 0, between = std::numeric_limits<double>::infinity();
    for (uint32_t a = 0; a < pairs.ranks; ++a)
      for (uint32_t b = 0; b < a; ++b) {
        const double us = cost(pairs, a, b);
        if (island[a] == island[b])
          inside = std::max(inside, us);
        else
          between = std::min(between, us);
      }
    // All ranks connected is no partition; nor is a chain of fast links between ranks that are far apart.
    if (between == std::numeric_limits<double>::infinity() || between < furthest * inside) continue;
    furthest = between / inside;
    found = make_islands(island.data(), pairs.ranks);
  }
  return found;
}

std::string describe(const Pairs& pairs) {
  constexpr const char* kNames[] = {"written", "read"};
  std::string text;
  for (const Pairs::Way way : {Pairs::kWritten, Pairs::kRead}) {
    if (pairs.at(way, Pairs::kLatency, 0, 1) == 0) continue;  // the memory has no place for it
    if (!text.empty()) text += "\n";
    text +=
        std::string("by words ") + kNames[way] + ": us, GB/s alone and together, from rank (down) to rank";
    for (uint32_t from = 0; from < pairs.ranks; ++from) {
      text += "\n";
      for (uint32_t to = 0; to < pairs.ranks; ++to) {
        char cell[64];
        if (from == to)
          std::snprintf(cell, sizeof(cell), "%22s", "-");
        else
          std::snprintf(cell, sizeof(cell), "  %6.2f %6.1f %6.1f", pairs.at(way, Pairs::kLatency, to, from),
                        pairs.bandwidth(way, Pairs::kAlone, to, from) / 1000,
                        pairs.bandwidth(way, Pairs::kTogether, to, from) / 1000);
        text += cell;
      }
    }
  }
  return text;
}

}  // namespace onehop
