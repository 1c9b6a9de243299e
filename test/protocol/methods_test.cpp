// All methods, among ranks that run freely against each other: random methods, types, operators, sizes,
// values, alignments, grids and delays in every operation, across the wrap of the epoch, over ordinary and
// over reordering memory.
//
// All results are compared with one reference, so results that are right have the same bits whatever the
// method.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "test/protocol/launched.hpp"
#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"
#include "test/protocol/scale.hpp"

namespace onehop::test {
namespace {

template <Fabric F>
void expect_right(F& fabric, const Script& script, const ScriptOptions& options) {
  RanksOptions ranks;
  ranks.layout = options.layout;
  ranks.islands = options.islands;
  ranks.threads = options.threads;
  // The wrap comes in the first half. Fresh flag words hold 0, and by then all of them must have been
  // renewed.
  const uint32_t before = options.steps / 3,
                 round = std::max(kInboxSlots * options.layout.inbox_capacity(WordKind::kFlag),
                                  kFlagSlots * 2 * options.layout.outbox_capacity(WordKind::kFlag));
  ASSERT_GT(before * 4 / 5, round) << "some steps are of size 0";
  ranks.first = turn_at(0u - before);
  const Outcome outcome = Ranks<F, Launched>(fabric, script, ranks).run();
  EXPECT_TRUE(outcome.problems.empty()) << outcome.text();
}

void expect_right(bool reordering, const ScriptOptions& options) {
  const Script script = random_script(options);
  if (reordering) {
    ReorderingFabric fabric(options.seed);
    expect_right(fabric, script, options);
  } else {
    PlainFabric fabric;
    expect_right(fabric, script, options);
  }
}

const char* name_of(Element element) {
  constexpr const char* kNames[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                    "fp16", "fp32",  "fp64",  "bf16",   "e4m3",  "e5m2"};
  return kNames[static_cast<size_t>(element)];
}

std::string with_fabric(std::string name, bool reordering) {
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name + (reordering ? "_reordering" : "_plain");
}

/// Partitions in the order of their number of ranks; a letter for each rank is its island.
constexpr const char* kOneOfEach[] = {"AB", "AAB", "ABAB", "AAABB", "AABBCC", "ABBBCCC", "AAAABBBB"};

class Mixed : public testing::TestWithParam<std::tuple<const char*, bool>> {};

// Every method with every kind of words.
TEST_P(Mixed, AllOperationsOnOneCommunicator) {
  const auto [partition, reordering] = GetParam();
  ScriptOptions options;
  options.islands = islands_of(partition);
  const auto ranks = static_cast<uint32_t>(std::strlen(partition));
  options.layout = {ranks, 44, 20};
  options.threads = ranks <= 3 ? 6 : 3;
  options.steps = scaled(1000, 700);
  options.seed = 110 + ranks;
  std::map<std::pair<Method, uint32_t>, uint32_t> uses;
  for (const Step& step : random_script(options)) {
    const uint32_t words =
        step.element == Element::kFloat8e4m3 ? 2 : static_cast<uint32_t>(word_kind(step.element));
    uses[{step.method, words}] += step.count > 0;
  }
  EXPECT_EQ(uses.size(), kMethods * 3);
  for (const auto& [what, times] : uses) EXPECT_GT(times, 0u);
  expect_right(reordering, options);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mixed,
                         testing::Combine(testing::ValuesIn(kOneOfEach), testing::ValuesIn(fabrics())),
                         [](const auto& parameters) {
                           return with_fabric(std::get<0>(parameters.param), std::get<1>(parameters.param));
                         });

class OfOneMethod : public testing::TestWithParam<std::tuple<Method, bool>> {};

TEST_P(OfOneMethod, FourRanks) {
  const auto [method, reordering] = GetParam();
  ScriptOptions options;
  options.islands = islands_of("AABB");
  options.layout = {4, 44, 20};
  options.threads = 4;
  options.steps = scaled(450, 310);
  options.seed = 200 + static_cast<uint32_t>(method);
  options.methods = {method};
  expect_right(reordering, options);
}

INSTANTIATE_TEST_SUITE_P(Methods, OfOneMethod,
                         testing::Combine(testing::ValuesIn(kAllMethods), testing::ValuesIn(fabrics())),
                         [](const auto& parameters) {
                           return with_fabric(onehop::name_of(std::get<0>(parameters.param)),
                                              std::get<1>(parameters.param));
                         });

class OfOneElement : public testing::TestWithParam<std::tuple<Element, bool>> {};

TEST_P(OfOneElement, ThreeRanks) {
  const auto [element, reordering] = GetParam();
  ScriptOptions options;
  options.islands = islands_of("ABA");
  options.layout = {3, 48, 20};
  options.threads = 6;
  options.steps = scaled(450, 310);
  options.seed = 300 + static_cast<uint32_t>(element);
  options.elements = {element};
  expect_right(reordering, options);
}

INSTANTIATE_TEST_SUITE_P(Elements, OfOneElement,
                         testing::Combine(testing::ValuesIn(kAllElements), testing::ValuesIn(fabrics())),
                         [](const auto& parameters) {
                           return with_fabric(name_of(std::get<0>(parameters.param)),
                                              std::get<1>(parameters.param));
                         });

// Where words of both pull methods and of all types meet in the same places, often equal to what was there.
TEST(ChangeWords, OfAllTypesAndBothMethods) {
  for (const char* partition : {"AB", "ABA", "AABBB"})
    for (bool reordering : fabrics()) {
      ScriptOptions options;
      options.islands = islands_of(partition);
      options.layout = {static_cast<uint32_t>(std::strlen(partition)), 0, 20};
      options.threads = 3;
      options.steps = scaled(450, 310);
      options.seed = 350;
      options.elements = {Element::kFloat16, Element::kBfloat16, Element::kFloat32, Element::kFloat8e4m3,
                          Element::kFloat8e5m2};
      options.reductions = {Reduction::kSum, Reduction::kMax};
      options.methods = {Method::kOneShotPull, Method::kTwoShotPull};
      expect_right(reordering, options);
    }
}

// The types with instantiations of their own, at each of the bounds that they are unrolled for.
TEST(Sums, AtTheBoundOfTheirInstantiation) {
  for (const char* partition : {"AB", "AABB", "AAAABBBB"})
    for (bool reordering : fabrics()) {
      ScriptOptions options;
      options.islands = islands_of(partition);
      options.layout = {static_cast<uint32_t>(std::strlen(partition)), 44, 20};
      options.threads = 2;
      options.steps = scaled(450, 310);
      options.seed = 400;
      options.elements = {Element::kFloat16, Element::kBfloat16, Element::kFloat32};
      options.reductions = {Reduction::kSum};
      expect_right(reordering, options);
    }
}

// One thread per rank, as on the stand-in node: ranks run furthest apart here.
TEST(OneThread, EightRanks) {
  for (bool reordering : fabrics()) {
    ScriptOptions options;
    options.islands = islands_of("ABCCBAAB");
    options.layout = {8, 44, 20};
    options.threads = 1;
    options.steps = scaled(1000, 310);
    options.seed = 500;
    expect_right(reordering, options);
  }
}

class Partition : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Partition, OfAnyShape) {
  const auto [partition, reordering] = GetParam();
  ScriptOptions options;
  options.islands = islands_of(partition);
  const auto ranks = static_cast<uint32_t>(std::strlen(partition));
  options.layout = {ranks, 62, 2};
  options.threads = ranks <= 8 ? 4 : 2;
  options.steps = 360;
  options.seed = 600;
  options.methods = {Method::kIslands};
  expect_right(reordering, options);
}

// The last ones: more ranks than one hop can join.
constexpr const char* kPartitions[] = {"AB",
                                       "AABB",
                                       "AAABB",
                                       "AABBB",
                                       "AAAABBBB",
                                       "ABBB",
                                       "AAAB",
                                       "ABAB",
                                       "ABBA",
                                       "ABC",
                                       "AABBCC",
                                       "ABCABC",
                                       "ABCDEFGH",
                                       "AAAAABBBB",
                                       "AAAAAABBBBB",
                                       "AAAAAAAABBBBBBBB",
                                       "AAAABBBBCCCCDDDD",
                                       "ABABABABABABABAB",
                                       "AABBAABBAABB",
                                       "AAAAAAAABC"};

INSTANTIATE_TEST_SUITE_P(Partitions, Partition,
                         testing::Combine(testing::ValuesIn(kPartitions), testing::ValuesIn(fabrics())),
                         [](const auto& parameters) {
                           return with_fabric(std::get<0>(parameters.param), std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace onehop::test
