// A long day of small calls on one thread, across the wrap of the epoch.
//
// usage: endurance CALLS RANKS FILE
#include "test/protocol/endurance.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "test/cpu_results.hpp"

int main(int argc, char** argv) {
  using namespace onehop::test;
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CALLS RANKS FILE\n", argv[0]);
    return 2;
  }
  EnduranceOptions options;
  options.operations = std::strtoull(argv[1], nullptr, 10);
  options.ranks = static_cast<uint32_t>(std::atoi(argv[2]));
  options.islands = onehop::equal_islands(options.ranks, 2);
  options.first_epoch = static_cast<uint32_t>(-static_cast<int64_t>(options.operations / 2));
  const Endured endured = endure(options);
  const double us = endured.seconds * 1e6 / static_cast<double>(endured.operations);
  std::printf("%" PRIu64 " calls, %" PRIu64 " long, %" PRIu64 " recurrences, %" PRIu64 " wraps, %" PRIu64
              " wrong; %.3f us per call%s%s\n",
              endured.operations, endured.long_ones, endured.recurrences, endured.wraps, endured.wrong, us,
              endured.problem.empty() ? "" : ": ", endured.problem.c_str());
  CpuResults results("small calls across the wrap of the epoch, all ranks on one thread", argc, argv,
                     "ordinary memory, one thread");
  results.add({{"side", "onehop"},
               {"plan", "pinned"},
               {"method", "all"},
               {"ranks", options.ranks},
               {"processes", 1},
               {"bytes", 16},
               {"type", "all"},
               {"op", "all"},
               {"mode", "eager"},
               {"us", us},
               {"wrong", endured.wrong},
               {"calls", endured.operations},
               {"calls_of_more_than_a_pack", endured.long_ones},
               {"first_epoch", options.first_epoch},
               {"epochs_passed", endured.operations - endured.recurrences * (Schedule::kReturn + 1)},
               {"wraps", endured.wraps},
               {"recurring_epochs", endured.recurrences},
               {"problem", endured.problem}});
  results.write(argv[3]);
  return endured.problem.empty() && endured.operations == options.operations ? 0 : 1;
}
