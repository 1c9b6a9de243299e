// One thing to be measured.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/onehop/bench/elements.hpp"

namespace onehop::bench {

enum class Mode {
  kGraph,         ///< calls captured into a graph, replayed on a stream of its own
  kGraphDefault,  ///< the same, replayed on the default stream, as plain PyTorch programs do
  kEager,         ///< calls one after another, without a graph
};
inline constexpr Mode kModes[] = {Mode::kGraph, Mode::kGraphDefault, Mode::kEager};

/// As the options and the results name it.
const char* name_of(Mode mode);

struct Case {
  Mode mode = Mode::kGraph;
  const ElementType* type = nullptr;
  bool in_place = false;
  size_t bytes = 0;
  size_t calls = 0;  ///< per graph, or per batch of eager calls
  std::string note;  ///< where the size comes from, for the table
};

/// A case that cannot be measured here, and why.
struct Skipped {
  Case what;
  std::string why;
};

/// Distance of the buffers of the calls of a case: each call has its own.
inline size_t stride_of(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace onehop::bench
