// Times of two groups of processes, by turns.
#pragma once

#include <cstdint>
#include <string>

#include "tools/onehop/tune_steps.hpp"
#include "tools/onehop/tune_workers.hpp"

namespace onehop::tune {

/// How long to look.
struct Effort {
  int calls, samples, turns;  ///< in a graph; of the graph; of both sides, one after the other
};
struct Efforts {
  Effort first, second;
};
Efforts efforts_of(const std::string& name);

/// Calls of so many bytes, with stock NCCL and with `other`, whose calls onehop is to take, or not: medians
/// over the turns, each of the slowest rank. Dropped where `other` has no time or wrong results; an Error
/// where stock NCCL has none, for then nothing can be measured any more.
Result<Times> time_by_turns(Workers& stock, Workers& other, bool takes, uint64_t bytes, const Effort&);

}  // namespace onehop::tune
