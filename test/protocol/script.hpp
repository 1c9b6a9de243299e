// A script: the operations that all ranks run, made from a seed before any thread starts. What NCCL requires
// to be equal on all ranks (type, operator, count, order) is equal; everything else differs from rank to
// rank.
#pragma once

#include <cstdint>
#include <iterator>
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
  Reduction reduction = Reduction::kSum;
  size_t count = 0;
  std::vector<Part> parts;              ///< by rank
  std::vector<unsigned char> expected;  ///< the result
};

using Script = std::vector<Step>;

inline constexpr Element kAllElements[] = {Element::kInt8,     Element::kUint8,      Element::kInt32,
                                           Element::kUint32,   Element::kInt64,      Element::kUint64,
                                           Element::kFloat16,  Element::kFloat32,    Element::kFloat64,
                                           Element::kBfloat16, Element::kFloat8e4m3, Element::kFloat8e5m2};
static_assert(std::size(kAllElements) == kElements);

inline constexpr Reduction kAllReductions[] = {Reduction::kSum, Reduction::kProd, Reduction::kMax,
                                               Reduction::kMin, Reduction::kAvg};
static_assert(std::size(kAllReductions) == kReductions);

struct ScriptOptions {
  uint32_t ranks = 2;
  uint32_t capacity = 16;  ///< packs per source
  uint32_t threads = 4;    ///< most threads that a rank may use
  uint32_t steps = 100;
  uint64_t seed = 1;
  std::vector<Element> elements{std::begin(kAllElements), std::end(kAllElements)};
  std::vector<Reduction> reductions{std::begin(kAllReductions), std::end(kAllReductions)};
};

/// Random types, operators, counts (0 and full capacity among them), values, shapes, alignments and delays.
Script random_script(const ScriptOptions& options);

/// One step, a sum: moderate values that differ in every step, one thread per rank, out of place, no delay.
Step plain_step(Element element, size_t count, uint32_t ranks, uint64_t seed);

}  // namespace onehop::test
