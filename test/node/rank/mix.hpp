// What the scenario "mix" and its test say to each other.
#pragma once

#include <cstdint>

namespace onehop::node {

inline constexpr int kLost = 7;  ///< exit code of a rank that noticed the loss of another

/// What a rank waits for, in a file of its folder ("where.RANK").
enum : int32_t { kElsewhere = 0, kInOnehop = 1 };

}  // namespace onehop::node
