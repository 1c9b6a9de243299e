// One-shot push among ranks that run freely against each other: random types, operators, sizes, values,
// alignments, grids and delays in every operation, across the wrap of the epoch, over ordinary and over
// reordering memory.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "test/protocol/ranks.hpp"
#include "test/protocol/reordering_memory.hpp"
#include "test/protocol/scale.hpp"

namespace onehop::test {
namespace {

template <class Protocol, Fabric F>
void expect_right(F& fabric, const ScriptOptions& options) {
  const Script script = random_script(options);
  RanksOptions ranks;
  ranks.ranks = options.ranks;
  ranks.capacity = options.capacity;
  ranks.threads = options.threads;
  // The wrap comes halfway. Fresh flag words hold 0, and by then all of them must have been renewed.
  ASSERT_GT(options.steps / 3, kSlots * options.capacity) << "half of the steps may be of size 0";
  ranks.first = turn_at(0u - options.steps / 3);
  const Outcome outcome = Ranks<F, Protocol>(fabric, script, ranks).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
}

void expect_right(bool reordering, const ScriptOptions& options) {
  if (reordering) {
    ReorderingFabric fabric(options.seed);
    expect_right<Proven>(fabric, options);
  } else {
    PlainFabric fabric;
    expect_right<Proven>(fabric, options);
  }
}

const char* name_of(Element element) {
  constexpr const char* kNames[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                    "fp16", "fp32",  "fp64",  "bf16",   "e4m3",  "e5m2"};
  return kNames[static_cast<size_t>(element)];
}

const char* name_of(bool reordering) {
  return reordering ? "reordering" : "plain";
}

class Mixed : public testing::TestWithParam<std::tuple<uint32_t, bool>> {};

TEST_P(Mixed, AllOperationsOnOneCommunicator) {
  const auto [ranks, reordering] = GetParam();
  ScriptOptions options;
  options.ranks = ranks;
  options.threads = ranks <= 3 ? 6 : 3;
  options.capacity = 8 + 3 * ranks;
  options.steps = scaled(reordering ? 1500 : 3000, 600);
  options.seed = 100 + ranks;
  expect_right(reordering, options);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mixed, testing::Combine(testing::Range(2u, 9u), testing::Bool()),
                         [](const auto& parameters) {
                           return std::to_string(std::get<0>(parameters.param)) + "_" +
                                  name_of(std::get<1>(parameters.param));
                         });

class OfOneElement : public testing::TestWithParam<std::tuple<Element, bool>> {};

TEST_P(OfOneElement, ThreeRanks) {
  const auto [element, reordering] = GetParam();
  ScriptOptions options;
  options.ranks = 3;
  options.threads = 8;
  options.capacity = 40;
  options.steps = scaled(1200, 450);
  options.seed = 200 + static_cast<uint32_t>(element);
  options.elements = {element};
  expect_right(reordering, options);
}

INSTANTIATE_TEST_SUITE_P(Elements, OfOneElement,
                         testing::Combine(testing::ValuesIn(kAllElements), testing::Bool()),
                         [](const auto& parameters) {
                           return std::string(name_of(std::get<0>(parameters.param))) + "_" +
                                  name_of(std::get<1>(parameters.param));
                         });

// One thread per rank, as on the stand-in node: ranks run furthest apart here.
TEST(OneThread, EightRanks) {
  for (bool reordering : {false, true}) {
    ScriptOptions options;
    options.ranks = 8;
    options.threads = 1;
    options.capacity = 24;
    options.steps = scaled(3000, 600);
    options.seed = 300;
    expect_right(reordering, options);
  }
}

// The bound on ranks is a template parameter, so that kernels for few ranks need few registers.
template <uint32_t kRanks>
void expect_right_at_the_bound() {
  ScriptOptions options;
  options.ranks = kRanks;
  options.capacity = 12;
  options.steps = scaled(1000, 200);
  options.seed = 400;
  ReorderingFabric fabric(options.seed);
  expect_right<Variant<ProvenRules, FlagWords, kRanks>>(fabric, options);
}

TEST(Bound, EqualToTheNumberOfRanks) {
  expect_right_at_the_bound<2>();
  expect_right_at_the_bound<4>();
}

}  // namespace
}  // namespace onehop::test
