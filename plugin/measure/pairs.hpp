// What was measured between every two ranks, and the islands that come of it: pure functions of what all
// ranks know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/islands.hpp"
#include "plugin/measure/timings.hpp"

namespace onehop {

/// Times of an exchange of two ranks, in us, as the receiver of one direction sees it: the part that depends
/// on the direction is that of the words that arrive at it.
struct Pairs {
  /// How words come: the peer writes them, or they are read from the peer.
  enum Way { kWritten, kRead, kWays };
  /// A few bytes with nothing else under way; many, likewise; many, while all other ranks exchange in pairs
  /// too.
  enum Load { kLatency, kAlone, kTogether, kLoads };
  using Matrix = std::array<std::array<double, kMaxHopRanks>, kMaxHopRanks>;  ///< [receiver][peer]

  uint32_t ranks = 0;
  uint64_t bytes = 0;  ///< of many
  std::array<std::array<Matrix, kLoads>, kWays> us{};

  double at(Way way, Load load, uint32_t receiver, uint32_t peer) const {
    return us[way][load][receiver][peer];
  }
  /// Bytes per us, the latency left out.
  double bandwidth(Way way, Load load, uint32_t receiver, uint32_t peer) const;
};

/// A transfer between islands takes at least so many times as long as one inside.
inline constexpr double kApart = 1.5;

/// The partition into groups with fast links inside and slow ones between, if there is one: every transfer
/// between two of them takes at least kApart times as long as the slowest inside one. Of several such
/// partitions the one whose links lie furthest apart.
std::optional<Islands> find_islands(const Pairs&);

/// A table of latencies and bandwidths, for the log.
std::string describe(const Pairs&);

}  // namespace onehop
