// Modelled fabrics: how long an all-reduce takes on links as they were published for some kinds of node. For
// choosing, which must come out right on them; they say nothing else about those machines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/method.hpp"

namespace onehop::standin {

/// Bandwidths in bytes per us; 1000 are 1 GB/s.
struct Fabric {
  std::string_view name;
  uint32_t ranks = 8;
  double hop_us = 2;           ///< until a written word is seen
  double read_hop_us = 3;      ///< until a published word is read
  double write_one = 52'000;   ///< one stream out of and into each GPU
  double write_many = 52'000;  ///< all to all
  double read_one = 52'000;    ///< one stream
  double read = 52'000;        ///< all from all
  double crossing = 0;         ///< of all words from one side to the other; 0: as good as any
  uint32_t sides[16] = {0, 0, 0, 0, 1, 1, 1, 1};  ///< of each rank, where there is a crossing
  double nccl_us = 200;
  double nccl_bytes_per_us = 40'000;
};

/// Time of one call of all ranks, in us; no method: stock NCCL. The islands are the sides.
inline double time_of(const Fabric& f, std::optional<Method> method, double bytes) {
  const double n = f.ranks, half = n / 2, one_shot = (n - 1) * bytes, two_shot = 2 * (n - 1) / n * bytes;
  if (!method) return f.nccl_us + two_shot / f.nccl_bytes_per_us;
  // Each rank of a side sends so much to each of the other.
  const auto moved = [&](double port_bytes, double bandwidth, double across_each) {
    const double across = f.crossing == 0 ? 0 : half * half * across_each / f.crossing;
    return std::max(port_bytes / bandwidth, across);
  };
  switch (*method) {
    case Method::kOneShot:
      return f.hop_us + moved(one_shot, f.write_many, bytes);
    case Method::kTwoShot:
      return 2 * f.hop_us + moved(two_shot, f.write_many, 2 * bytes / n);
    case Method::kOneShotStaged:
      return (n - 1) * f.hop_us + moved(one_shot, f.write_one, bytes);
    case Method::kTwoShotStaged:
      return 2 * (n - 1) * f.hop_us + moved(two_shot, f.write_one, 2 * bytes / n);
    case Method::kOneShotPull:
      return f.read_hop_us + moved(one_shot, f.read, bytes);
    case Method::kTwoShotPull:
      return 2 * f.read_hop_us + moved(two_shot, f.read, 2 * bytes / n);
    case Method::kIslands:
      // Slices to the mates and results back; across, each rank sends to one: its slice's sum or result,
      // twice as wide in one direction.
      return 4 * f.hop_us +
             std::max(2 * (half - 1) / half * bytes / f.write_many,
                      f.crossing == 0 ? 2 * bytes / half / f.write_many : 2 * bytes / f.crossing);
  }
  return 0;
}

/// Time of an exchange of two ranks, by words that are written or read, while `across` pairs use the crossing
/// (0: nobody else does).
inline double time_of_pair(const Fabric& f, uint32_t a, uint32_t b, bool written, double bytes,
                           uint32_t across) {
  double bandwidth = written ? f.write_one : f.read_one;
  if (f.crossing != 0 && f.sides[a] != f.sides[b])
    bandwidth = std::min(bandwidth, f.crossing / std::max(across, 1u));
  return (written ? f.hop_us : f.read_hop_us) + bytes / bandwidth;
}

inline constexpr Fabric kFabrics[] = {
    {.name = "switch"},
    {.name = "collapse", .write_one = 26'000, .write_many = 2'600},
    {.name = "root-complex",
     .hop_us = 1.5,
     .write_one = 25'000,
     .write_many = 5'000,
     .read_one = 4'000,
     .read = 4'000,
     .nccl_bytes_per_us = 10'000},
    {.name = "two-sockets",
     .write_one = 25'000,
     .write_many = 25'000,
     .read_one = 25'000,
     .read = 25'000,
     .crossing = 12'000,
     .nccl_bytes_per_us = 10'000},
    // As before, with ranks that alternate between the sockets.
    {.name = "two-sockets-interleaved",
     .write_one = 25'000,
     .write_many = 25'000,
     .read_one = 25'000,
     .read = 25'000,
     .crossing = 12'000,
     .sides = {0, 1, 0, 1, 0, 1, 0, 1},
     .nccl_bytes_per_us = 10'000},
    // No peer access: what is written is read again from host memory. 26 GB/s to each GPU, 50 out of the
    // memory; a rank publishes once, and its peers read.
    {.name = "host-memory",
     .ranks = 4,
     .read_hop_us = 4,
     .read_one = 26'000,
     .read = 12'500,
     .nccl_us = 60,
     .nccl_bytes_per_us = 8'000},
    {.name = "pair", .ranks = 2, .nccl_us = 25},
    // NCCL is the faster one from the middle of the sizes on.
    {.name = "slow-pair",
     .ranks = 2,
     .write_one = 5'000,
     .write_many = 5'000,
     .read_one = 5'000,
     .read = 5'000,
     .nccl_us = 25,
     .nccl_bytes_per_us = 12'000},
    {.name = "no-use", .ranks = 2, .nccl_us = 1.5, .nccl_bytes_per_us = 52'000}};

/// Null: there is none of that name.
constexpr const Fabric* find_fabric(std::string_view name) {
  for (const Fabric& f : kFabrics)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace onehop::standin
