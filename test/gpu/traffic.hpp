// Bytes that one call moves over the links of one GPU, for sentinel words (kernels/protocol). What waiting
// ranks read in vain is not in it.
#pragma once

#include <algorithm>

#include "kernels/method.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop::test {

/// Of one rank. In device memory: into and out of the memory of peers. In host memory: all of it, the rank's
/// own staging memory included.
struct Traffic {
  double written = 0, read = 0;
};

/// With islands: of the rank that writes most. `wide`: packs of unrounded sums for each pack.
inline double islands_written(double bytes, const Islands& islands, uint32_t wide) {
  double most = 0;
  for (uint32_t i = 0; i < islands.count; ++i) {
    double sums = 0, results = 0;
    for (uint32_t t = 0; t < islands.runs; ++t) {
      if (islands.island[islands.run[t]] != i) continue;
      if (t + 1u < islands.runs)
        sums += wide;
      else
        results = islands.count - 1;
    }
    const double size = islands.size(i);
    most = std::max(most, bytes / size * (2 * (size - 1) + sums + results));
  }
  return most;
}

inline Traffic traffic(Method method, StagingKind kind, double bytes, const CommView& view, uint32_t wide) {
  const double n = view.ranks, others = n - 1;
  const double one_shot = others * bytes, two_shot = 2 * others * bytes / n;
  const bool host = kind == StagingKind::kHost;
  switch (method) {
    // In host memory the inbox is emptied and read over the link, too; staged forms read it twice, but for
    // results.
    case Method::kOneShot:
      return host ? Traffic{2 * one_shot, one_shot} : Traffic{one_shot, 0};
    case Method::kOneShotStaged:
      return host ? Traffic{2 * one_shot, 2 * one_shot} : Traffic{one_shot, 0};
    case Method::kTwoShot:
      return host ? Traffic{2 * two_shot, two_shot} : Traffic{two_shot, 0};
    case Method::kTwoShotStaged:
      return host ? Traffic{2 * two_shot, 1.5 * two_shot} : Traffic{two_shot, 0};
    // The outbox is written once, whoever reads it, and never emptied.
    case Method::kOneShotPull:
      return {host ? bytes : 0, one_shot};
    case Method::kTwoShotPull:
      return {host ? bytes / n * others + bytes / n : 0, two_shot};
    case Method::kIslands: {
      // Emptied are all places of all sources, whether they send to this rank or not.
      const double written = islands_written(bytes, view.islands, wide),
                   places = (2.0 + wide * (view.islands.runs - 1.0)) * bytes / view.islands.smallest;
      return host ? Traffic{written + others * places, written} : Traffic{written, 0};
    }
  }
  return {};
}

}  // namespace onehop::test
