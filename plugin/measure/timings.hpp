// What was measured of a communicator: the same on all its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/method.hpp"

namespace onehop {

struct Timings {
  struct Row {
    std::optional<Method> method;  ///< nothing: stock NCCL
    std::vector<double> us;        ///< time of one call for each of `sizes`; NaN where it was not measured
  };
  std::vector<uint64_t> sizes;  ///< bytes of a call, ascending
  std::vector<Row> rows;

  const Row* of(std::optional<Method> method) const {
    for (const Row& row : rows)
      if (row.method == method) return &row;
    return nullptr;
  }
};

}  // namespace onehop
