// A script: the operations that all ranks run, made from a seed before any thread starts. What NCCL requires
// to be equal on all ranks (type, operator, count, order) is equal, and so is the method, which follows from
// these; everything else differs from rank to rank.
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
  bool typed = false;     ///< the rank runs the instantiation for this type, if there is one
};

struct Step {
  Element element = Element::kFloat32;
  Reduction reduction = Reduction::kSum;
  Method method = Method::kOneShot;
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

inline constexpr Method kAllMethods[] = {Method::kOneShot,       Method::kTwoShot,     Method::kOneShotStaged,
                                         Method::kTwoShotStaged, Method::kOneShotPull, Method::kTwoShotPull,
                                         Method::kIslands};
static_assert(std::size(kAllMethods) == kMethods);

struct ScriptOptions {
  Layout layout{2, 16, 16};
  Islands islands;
  uint32_t threads = 4;  ///< most threads that a rank may use
  uint32_t steps = 100;
  uint64_t seed = 1;
  std::vector<Element> elements{std::begin(kAllElements), std::end(kAllElements)};
  std::vector<Reduction> reductions{std::begin(kAllReductions), std::end(kAllReductions)};
  std::vector<Method> methods{std::begin(kAllMethods), std::end(kAllMethods)};
};

/// Random types, operators, methods (those that can serve the communicator), counts (0 and the largest among
/// them), values, shapes, alignments and delays. Every other step repeats one of the last few, its data at
/// least: then words are equal to those that their places held before.
Script random_script(const ScriptOptions& options);

/// One step, a sum: moderate values that differ in every step, one thread per rank, out of place, no delay.
Step plain_step(Element element, size_t count, uint32_t ranks, uint64_t seed,
                Method method = Method::kOneShot);

/// Packs of payload of a step.
uint32_t packs_of(const Step& step);

}  // namespace onehop::test
