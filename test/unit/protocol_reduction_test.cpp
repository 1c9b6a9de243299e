// Operators on packs, for every type: chosen values, and all else against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/protocol/all_reduce.hpp"
#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {
namespace {

template <class Type>
using BitsOfType = typename BitsOf<Type::kBytes>::Type;

template <class Type>
Pack filled(uint64_t bits) {
  Lanes<Type::kBytes> lanes;
  for (auto& lane : lanes.lane) lane = static_cast<BitsOfType<Type>>(bits);
  return pack_of<Type::kBytes>(lanes);
}

Bytes bytes_of(const Pack& pack) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&pack);
  return {bytes, bytes + sizeof(pack)};
}

template <class PackReduction>
Pack reduced(const std::vector<Pack>& packs, PackReduction reduction = {}) {
  for (size_t r = 0; r < packs.size(); ++r) r == 0 ? reduction.start(packs[r]) : reduction.add(packs[r]);
  return reduction.result(static_cast<uint32_t>(packs.size()));
}

/// The bits of the one value that all lanes have.
template <class Type, class Operator>
uint64_t reduce(std::initializer_list<uint64_t> bits) {
  std::vector<Pack> packs;
  for (uint64_t of_rank : bits) packs.push_back(filled<Type>(of_rank));
  const auto lanes = lanes_of<Type::kBytes>(reduced<PackReduction<Type, Operator>>(packs));
  for (const auto lane : lanes.lane) EXPECT_EQ(lane, lanes.lane[0]);
  return lanes.lane[0];
}

/// The same by value; every integer type has a C++ type.
template <class Type, class Operator>
auto of(std::initializer_list<typename Type::Accumulator> values) {
  using Value = typename Type::Accumulator;
  std::vector<Pack> packs;
  for (Value value : values) packs.push_back(filled<Type>(Type::round(value)));
  return Type::widen(lanes_of<Type::kBytes>(reduced<PackReduction<Type, Operator>>(packs)).lane[0]);
}

template <class T>
constexpr T kMost = std::numeric_limits<T>::max();
template <class T>
constexpr T kLeast = std::numeric_limits<T>::min();

TEST(Sum, KeepsNegativeZero) {
  for (Element element : kAllElements) {
    if (!is_floating(element)) continue;
    dispatch(element, Reduction::kSum, []<class Type, class Operator>() {
      const uint64_t negative = uint64_t{1} << (8 * Type::kBytes - 1);
      EXPECT_EQ((reduce<Type, Operator>({negative, negative, negative})), negative);
      EXPECT_EQ((reduce<Type, Operator>({negative, 0})), 0u);
    });
  }
}

// 2048 + 1 + 1 is 2050 when rounded once; in steps of fp16 it would stay 2048.
TEST(Sum, RoundsOnce) {
  EXPECT_EQ((of<Float16, Sum>({2048, 1, 1})), 2050);
  EXPECT_EQ((of<Bfloat16, Sum>({256, 1, 1})), 258);
  EXPECT_EQ((of<Float8e4m3, Sum>({16, 1, 1})), 18);
  EXPECT_EQ((of<Float8e5m2, Sum>({8, 1, 1})), 10);
  // Too large on the way only.
  EXPECT_EQ((of<Float16, Sum>({60000, 60000, -60000})), 60000);
  EXPECT_EQ((of<Float8e4m3, Sum>({448, 448, -448})), 448);
}

TEST(Sum, AddsInRankOrder) {
  EXPECT_EQ((of<Float32, Sum>({1e8f, -1e8f, 1.0f})), 1.0f);
  EXPECT_EQ((of<Float32, Sum>({1.0f, 1e8f, -1e8f})), 0.0f);
}

TEST(Sum, OfFloat8Saturates) {
  EXPECT_EQ((of<Float8e4m3, Sum>({448, 448})), 448);
  EXPECT_EQ((of<Float8e5m2, Sum>({-57344, -57344})), -57344);
  EXPECT_EQ((reduce<Float8e5m2, Sum>({0x7C, 0})), 0x7Bu) << "infinity";
}

TEST(Sum, OfIntegersWraps) {
  EXPECT_EQ((of<Int8, Sum>({127, 1})), -128);
  EXPECT_EQ((of<Int8, Sum>({-128, -128, -1})), -1);
  EXPECT_EQ((of<Uint8, Sum>({255, 2})), 1);
  EXPECT_EQ((of<Int32, Sum>({kMost<int32_t>, 1})), kLeast<int32_t>);
  EXPECT_EQ((of<Uint32, Sum>({kMost<uint32_t>, 2})), 1u);
  EXPECT_EQ((of<Int64, Sum>({kLeast<int64_t>, -1})), kMost<int64_t>);
  EXPECT_EQ((of<Uint64, Sum>({kMost<uint64_t>, 2})), 1u);
}

TEST(Prod, OfIntegersWraps) {
  EXPECT_EQ((of<Int8, Prod>({16, 16})), 0);
  EXPECT_EQ((of<Int8, Prod>({-128, -1})), -128);
  EXPECT_EQ((of<Int8, Prod>({100, 3, -1})), -44);
  EXPECT_EQ((of<Uint8, Prod>({200, 3})), 88);
  EXPECT_EQ((of<Int32, Prod>({kLeast<int32_t>, -1})), kLeast<int32_t>);
  EXPECT_EQ((of<Uint32, Prod>({kMost<uint32_t>, kMost<uint32_t>})), 1u);
  EXPECT_EQ((of<Int64, Prod>({kMost<int64_t>, 2})), -2);
  EXPECT_EQ((of<Uint64, Prod>({uint64_t{1} << 63, 3})), uint64_t{1} << 63);
}

TEST(Prod, OfFloatsRoundsOnce) {
  EXPECT_EQ((of<Float16, Prod>({1024, 1024, 0.0009765625f})), 1024);
  EXPECT_EQ((of<Float8e4m3, Prod>({-300, 300})), -448);
  EXPECT_EQ((of<Float64, Prod>({1e200, 1e200, 1e-200})), INFINITY);
}

TEST(Avg, OfIntegersWrapsAndThenDividesTowardsZero) {
  EXPECT_EQ((of<Int8, Avg>({-3, -4})), -3);
  EXPECT_EQ((of<Int8, Avg>({3, 4})), 3);
  EXPECT_EQ((of<Int8, Avg>({-1, 0, 0})), 0);
  EXPECT_EQ((of<Int8, Avg>({127, 1})), -64);
  EXPECT_EQ((of<Uint8, Avg>({255, 1})), 0);
  EXPECT_EQ((of<Uint8, Avg>({255, 0})), 127);
  EXPECT_EQ((of<Int32, Avg>({-7, 0, 0, 0})), -1);
  EXPECT_EQ((of<Int32, Avg>({kMost<int32_t>, 1})), kLeast<int32_t> / 2);
  EXPECT_EQ((of<Uint32, Avg>({kMost<uint32_t>, 0})), kMost<int32_t> + uint32_t{0});
  EXPECT_EQ((of<Int64, Avg>({-5, 0})), -2);
  EXPECT_EQ((of<Uint64, Avg>({kMost<uint64_t>, 2})), 0u);
}

TEST(Avg, OfFloatsDividesTheSumAndRoundsOnce) {
  EXPECT_EQ((of<Float16, Avg>({60000, 60000})), 60000);
  EXPECT_EQ((of<Float8e4m3, Avg>({448, 448, 448})), 448);
  EXPECT_EQ((reduce<Float16, Avg>({kHalf.round(1), kHalf.round(2), kHalf.round(2)})), kHalf.round(5.0 / 3));
  EXPECT_EQ((of<Float32, Avg>({1, 0, 0})), 1.0f / 3);
  EXPECT_EQ((of<Float64, Avg>({1, 0, 0})), 1.0 / 3);
  EXPECT_EQ((of<Float32, Avg>({kMost<float>, kMost<float>})), INFINITY);
}

TEST(MaxMin, CompareWithTheTypesOwnSign) {
  EXPECT_EQ((of<Int8, Max>({-1, 1})), 1);
  EXPECT_EQ((of<Uint8, Max>({255, 1})), 255);
  EXPECT_EQ((of<Int32, Min>({-1, 1})), -1);
  EXPECT_EQ((of<Uint32, Min>({kMost<uint32_t>, 1})), 1u);
  EXPECT_EQ((of<Int64, Max>({kLeast<int64_t>, 0, -1})), 0);
  EXPECT_EQ((of<Uint64, Max>({uint64_t{1} << 63, 0, 1})), uint64_t{1} << 63);
  EXPECT_EQ((of<Float32, Max>({-1, 3, 2})), 3);
  EXPECT_EQ((of<Float16, Min>({-1, -INFINITY, 2})), -INFINITY);
}

template <class Type>
void expect_nan_and_zero_rules() {
  constexpr uint64_t kNegative = uint64_t{1} << (8 * Type::kBytes - 1);
  const uint64_t nan = kNegative - 1, number = Type::round(-2);
  for (uint64_t sign : {uint64_t{0}, kNegative}) {
    EXPECT_EQ((reduce<Type, Max>({nan | sign, number})), number);
    EXPECT_EQ((reduce<Type, Max>({number, nan | sign})), number);
    EXPECT_EQ((reduce<Type, Min>({nan | sign, nan, number})), number);
    EXPECT_EQ((reduce<Type, Min>({number, nan | sign})), number);
    for (const uint64_t both : {reduce<Type, Max>({nan | sign, nan}), reduce<Type, Min>({nan, nan | sign})})
      EXPECT_TRUE(std::isnan(Type::widen(static_cast<BitsOfType<Type>>(both))));
  }
  EXPECT_EQ((reduce<Type, Max>({0, kNegative})), 0u);
  EXPECT_EQ((reduce<Type, Max>({kNegative, 0})), 0u);
  EXPECT_EQ((reduce<Type, Max>({kNegative, kNegative})), kNegative);
  EXPECT_EQ((reduce<Type, Min>({0, kNegative})), kNegative);
  EXPECT_EQ((reduce<Type, Min>({kNegative, 0})), kNegative);
  EXPECT_EQ((reduce<Type, Min>({0, 0})), 0u);
}

TEST(MaxMin, ANumberBeatsANanAndZerosHaveSigns) {
  for (Element element : kAllElements)
    if (is_floating(element))
      dispatch(element, Reduction::kMax, []<class Type, class>() {
        if constexpr (std::is_floating_point_v<typename Type::Accumulator>) expect_nan_and_zero_rules<Type>();
      });
}

/// As reduced(), but handed on in a chain of several: after each rank the unrounded sum goes to another
/// reduction as packs.
template <class PackReduction>
Pack reduced_in_a_chain(const std::vector<Pack>& packs, const PackReduction& fresh) {
  PackReduction reduction = fresh;
  reduction.start(packs[0]);
  for (size_t r = 1; r < packs.size(); ++r) {
    PackReduction next = fresh;
    for (uint32_t w = 0; w < reduction.wide_packs(); ++w) next.set_wide(w, reduction.wide(w));
    reduction = next;
    reduction.add(packs[r]);
  }
  return reduction.result(static_cast<uint32_t>(packs.size()));
}

class EveryOperation : public testing::TestWithParam<std::tuple<Element, Reduction>> {
 protected:
  /// Runs what dispatch() chooses for the operation, and what looks at type and operator when it runs; each
  /// at one place, and in a chain of ranks.
  void compare(const std::vector<Pack>& packs) {
    const auto [element, reduction] = GetParam();
    with_words(element, [&, element = element, reduction = reduction]<class Words>() {
      const AnyReduction<Words> fresh(element, reduction);
      compare(packs, bytes_of(reduced(packs, fresh)));
      compare(packs, bytes_of(reduced_in_a_chain(packs, fresh)));
    });
    dispatch(element, reduction, [&]<class Type, class Operator>() {
      using Reduction = PackReduction<Type, Operator>;
      compare(packs, bytes_of(reduced<Reduction>(packs)));
      compare(packs, bytes_of(reduced_in_a_chain(packs, Reduction())));
    });
  }

 private:
  void compare(const std::vector<Pack>& packs, const Bytes& result) {
    const auto [element, reduction] = GetParam();
    std::vector<Bytes> inputs;
    for (const Pack& pack : packs) inputs.push_back(bytes_of(pack));
    const size_t lanes = sizeof(Pack) / element_size(element);
    const Bytes expected = reference(element, reduction, lanes, inputs);
    for (size_t i = 0; i < lanes; ++i) {
      if (is_nan_lane(element, expected, i)) {
        ASSERT_TRUE(is_nan_lane(element, result, i));
      } else {
        ASSERT_EQ(bits_at(element, result, i), bits_at(element, expected, i));
      }
    }
  }
};

TEST_P(EveryOperation, OnRandomBitsIsTheReferences) {
  Random random(7);
  for (int round = 0; round < 1500 && !HasFatalFailure(); ++round) {
    std::vector<Pack> packs(random.between(2, kMaxRanks));
    for (Pack& pack : packs)
      for (uint32_t& word : pack.word) word = static_cast<uint32_t>(random.next());
    compare(packs);
  }
}

// Numbers of like size, as random bits of the wide types rarely are.
TEST_P(EveryOperation, OnEverydayNumbersIsTheReferences) {
  for (uint64_t seed = 0; seed < 600 && !HasFatalFailure(); ++seed) {
    const Element element = std::get<0>(GetParam());
    const auto ranks = static_cast<uint32_t>(2 + seed % (kMaxRanks - 1));
    const Step step = plain_step(element, sizeof(Pack) / element_size(element), ranks, seed);
    std::vector<Pack> packs(ranks);
    for (uint32_t r = 0; r < ranks; ++r) std::memcpy(&packs[r], step.parts[r].input.data(), sizeof(Pack));
    compare(packs);
  }
}

class OperationOnBytes : public EveryOperation {};

TEST_P(OperationOnBytes, OnAllPairsIsTheReferences) {
  for (uint32_t a = 0; a < 256; ++a)
    for (uint32_t b = 0; b < 256 && !HasFatalFailure(); b += 16) {
      std::vector<Pack> packs{filled<Uint8>(a), {}};
      for (uint32_t i = 0; i < 16; ++i)
        reinterpret_cast<unsigned char*>(&packs[1])[i] = static_cast<unsigned char>(b + i);
      compare(packs);
    }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Element, Reduction>>& parameters) {
  constexpr const char* kElementNames[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                           "fp16", "fp32",  "fp64",  "bf16",   "e4m3",  "e5m2"};
  constexpr const char* kReductionNames[] = {"sum", "prod", "max", "min", "avg"};
  const auto [element, reduction] = parameters.param;
  return std::string(kElementNames[static_cast<size_t>(element)]) + "_" +
         kReductionNames[static_cast<size_t>(reduction)];
}

INSTANTIATE_TEST_SUITE_P(Operations, EveryOperation,
                         testing::Combine(testing::ValuesIn(kAllElements), testing::ValuesIn(kAllReductions)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Operations, OperationOnBytes,
                         testing::Combine(testing::Values(Element::kInt8, Element::kUint8,
                                                          Element::kFloat8e4m3, Element::kFloat8e5m2),
                                          testing::ValuesIn(kAllReductions)),
                         name_of);

}  // namespace
}  // namespace onehop::test
