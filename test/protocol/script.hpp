// A script: the operations that all ranks run, made from a seed before any thread starts. What NCCL requires
// to be equal on all ranks (type, count, order) is equal; everything else differs from rank to rank.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/operation.hpp"

namespace onehop::test {

/// Grid of one launch: `blocks` of `threads`. The keeper of a block is its first thread; it works too unless
/// `separate_keeper`.
struct Shape {
  uint32_t blocks = 1;
  uint32_t threads = 1;
  bool separate_keeper = false;

  uint32_t total() const { return blocks * threads; }
};

/// One rank's part in a step.
struct Part {
  std::vector<unsigned char> input;
  Shape shape;
  bool in_place = false;
  uint32_t send_shift = 0;  ///< elements by which the buffer misses 16-byte alignment
  uint32_t receive_shift = 0;
  uint32_t delay_us = 0;  ///< the rank comes late by this much
};

struct Step {
  Element element = Element::kFloat32;
  size_t count = 0;
  std::vector<Part> parts;              ///< by rank
  std::vector<unsigned char> expected;  ///< the sum
};

using Script = std::vector<Step>;

inline constexpr Element kAllElements[] = {Element::kFloat32, Element::kFloat16,   Element::kBfloat16,
                                           Element::kFloat64, Element::kInteger32, Element::kInteger64};

struct ScriptOptions {
  uint32_t ranks = 2;
  uint32_t capacity = 16;  ///< packs per source
  uint32_t threads = 4;    ///< most threads that a rank may use
  uint32_t steps = 100;
  uint64_t seed = 1;
  std::vector<Element> elements{std::begin(kAllElements), std::end(kAllElements)};
};

/// Random types, counts (0 and full capacity among them), values, shapes, alignments and delays.
Script random_script(const ScriptOptions& options);

/// One step: moderate values that differ in every step, one thread per rank, out of place, no delay.
Step plain_step(Element element, size_t count, uint32_t ranks, uint64_t seed);

}  // namespace onehop::test
