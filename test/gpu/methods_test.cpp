// Every method on a GPU: all types, operators, rank counts, edges of packs and operations, alignments;
// checked on the GPU, result by result, against a reference that is computed apart (trials.cu).
//
// --gtest_filter='Small/*' is a part of it that is short enough for compute-sanitizer.

#include <random>

#include "test/gpu/reference.hpp"
#include "test/gpu/trial_runner.hpp"

namespace onehop::test {
namespace {

/// Which ranks form the islands.
enum class Partition { kTwoEqual, kThreeAndRest, kInterleaved, kFour };

Islands islands_of(Partition partition, uint32_t ranks) {
  uint8_t island[kMaxRanks] = {};
  for (uint32_t r = 0; r < ranks; ++r) {
    if (partition == Partition::kThreeAndRest) island[r] = r < 3 ? 0 : 1;
    if (partition == Partition::kInterleaved) island[r] = static_cast<uint8_t>(r % 2);
  }
  if (partition == Partition::kTwoEqual) return equal_islands(ranks, 2);
  if (partition == Partition::kFour) return equal_islands(ranks, 4);
  return make_islands(island, ranks);
}

struct Parameters {
  Method method = Method::kOneShot;
  uint32_t ranks = 2;
  StagingKind kind = StagingKind::kPeer;
  Partition partition = Partition::kTwoEqual;

  NodeOptions options() const {
    NodeOptions options;
    options.ranks = ranks;
    options.kind = kind;
    options.islands = islands_of(partition, ranks);
    return options;
  }
};

std::string test_name(const testing::TestParamInfo<Parameters>& info) {
  constexpr const char* kPartitions[] = {"", "ThreeAndRest", "Interleaved", "FourIslands"};
  const Parameters& parameters = info.param;
  return word_of(parameters.method) + std::to_string(parameters.ranks) + "Ranks" +
         (parameters.kind == StagingKind::kHost ? "HostMemory" : "") +
         kPartitions[static_cast<size_t>(parameters.partition)];
}

/// All operators of all types.
template <class Visit>
void for_each_operator(Visit&& visit) {
  for (uint32_t element = 0; element < kElements; ++element)
    for (uint32_t reduction = 0; reduction < kReductions; ++reduction)
      visit(static_cast<Element>(element), static_cast<Reduction>(reduction));
}

/// Aligned; and one element off, in the input, in the result or in both.
std::pair<uint32_t, uint32_t> off_by(bool off, uint32_t number) {
  constexpr std::pair<uint32_t, uint32_t> kOff[] = {{1, 1}, {1, 0}, {0, 1}};
  return off ? kOff[number % 3] : std::pair<uint32_t, uint32_t>{0, 0};
}
/// Some ranks in place and others not, in the same call.
uint32_t in_place_ranks(uint32_t number) {
  return 0b1001'0110'1001'0110u >> number % 5;
}

/// `limit`: of one operation; beyond it a call takes several.
void add_matrix(TrialPlan& plan, const std::vector<size_t>& counts, size_t limit, Method method) {
  uint32_t number = 0;
  const auto add = [&](size_t count, bool common) {
    for (const bool off : {false, true})
      for (const bool exact : {false, true}) {
        plan.add(count, off_by(off, number), in_place_ranks(number), number, exact, method, common);
        ++number;
      }
  };
  for (const size_t count : counts) add(count, true);
  for (const size_t count : {limit - 1, limit, limit + 1}) add(count, false);
}

class Matrix : public testing::TestWithParam<Parameters> {
 protected:
  void run(const NodeOptions& options, const std::vector<size_t>& counts,
           const std::vector<std::pair<Element, Reduction>>& operators) {
    LocalRanks node(options);
    TrialPlan plan;
    for (const auto& [element, reduction] : operators) {
      plan.begin(element, reduction);
      const size_t limit = node[0].limit(GetParam().method, element);
      ASSERT_GT(limit, 1u);
      add_matrix(plan, counts, limit, GetParam().method);
    }
    TrialRunner(node, plan).run();
  }
};

TEST_P(Matrix, EveryTypeOperatorCountAndAlignmentGivesTheBitsOfTheReference) {
  std::vector<std::pair<Element, Reduction>> operators;
  for_each_operator(
      [&](Element element, Reduction reduction) { operators.emplace_back(element, reduction); });
  run(GetParam().options(), {0, 1, 2, 3, 5, 7, 8, 9, 15, 17, 1023, 1025, 21504, 65537}, operators);
}

class SmallMatrix : public Matrix {};

TEST_P(SmallMatrix, AFewTypesAndCountsGiveTheBitsOfTheReference) {
  NodeOptions options = GetParam().options();
  options.inbox = options.outbox = 48;
  run(options, {0, 1, 7, 17, 331},
      {{Element::kBfloat16, Reduction::kSum},
       {Element::kFloat32, Reduction::kSum},
       {Element::kInt64, Reduction::kProd},
       {Element::kFloat8e4m3, Reduction::kAvg},
       {Element::kUint8, Reduction::kMax}});
}

class Counts : public testing::TestWithParam<Parameters> {};

TEST_P(Counts, EveryCountUpTo4097GivesTheBitsOfTheReference) {
  LocalRanks node(GetParam().options());
  TrialPlan plan;
  for (const Element element : {Element::kBfloat16, Element::kInt32, Element::kFloat8e4m3}) {
    for (uint32_t count = 0; count <= 4097; ++count) {
      if (count % 256 == 0) plan.begin(element, Reduction::kSum);
      plan.add(count, {count % 7, count % 3}, count % 3 == 0 ? in_place_ranks(count) : 0, count,
               count % 2 == 0, GetParam().method, true);
    }
  }
  TrialRunner(node, plan).run();
}

class Wrap : public testing::TestWithParam<Parameters> {};

TEST_P(Wrap, OperationsOnBothSidesOfTheEndOfTheEpochsAreRight) {
  LocalRanks node(GetParam().options());
  constexpr uint32_t kBefore = 60;  // operations
  node.continue_at(0u - kBefore);
  TrialPlan plan;
  // Batches of alternating kinds of words, so that both have operations close to the end.
  for (uint32_t batch = 0; batch < 12; ++batch) {
    plan.begin(batch % 2 == 0 ? Element::kInt64 : Element::kBfloat16, Reduction::kSum);
    for (uint32_t k = 0; k < 12; ++k)
      plan.add(1 + (batch * 131 + k * 97) % 1500, off_by(k % 2 == 1, k), in_place_ranks(k), 1000 + k, false,
               GetParam().method);
  }
  TrialRunner(node, plan).run();
}

class Mixed : public testing::TestWithParam<Parameters> {};

/// Nothing that one operation leaves behind may disturb the next, whatever its method, type, size and grid;
/// grids are not even the same on all ranks.
TEST_P(Mixed, OperationsOfAnyMethodTypeSizeAndGeometryFollowEachOther) {
  LocalRanks node(GetParam().options());
  std::vector<Method> methods;
  for (uint32_t m = 0; m < kMethods; ++m)
    if (node[0].limit(static_cast<Method>(m), Element::kInt64) != 0)
      methods.push_back(static_cast<Method>(m));
  std::mt19937 random(29);
  TrialPlan plan;
  for (uint32_t batch = 0; batch < 150; ++batch) {
    plan.begin(static_cast<Element>(random() % kElements), static_cast<Reduction>(random() % kReductions));
    for (uint32_t k = 0; k < 20; ++k) {
      const uint32_t largest = k % 5 == 0 ? 30000 : k % 5 == 1 ? 4000 : 200;
      plan.add(random() % largest, {random() % 3, random() % 3}, random(), random(), random() % 2 == 0,
               methods[random() % methods.size()]);
    }
  }
  std::mt19937 of_geometry(31);
  TrialRunner(node, plan).run([&](const Rank& rank, const Operation& operation) {
    Geometry geometry = rank.geometry(operation);
    if (of_geometry() % 2 == 0)
      geometry = {1 + static_cast<uint32_t>(of_geometry()) % rank.max_blocks,
                  32 * (1 + static_cast<uint32_t>(of_geometry()) % (kMaxWorkers / 32))};
    return geometry;
  });
}

/// The reference that all other tests rely on, against the one for the host (reference.hpp).
TEST(Reference, OfTheGpuIsThatOfTheHost) {
  constexpr uint32_t kRanks = 5;
  LocalRanks node({.ranks = kRanks});
  for_each_operator([&](Element element, Reduction reduction) {
    for (const bool exact : {false, true}) {
      if (testing::Test::HasFailure()) return;
      constexpr uint32_t kCount = 3000;
      TrialPlan plan;
      plan.begin(element, reduction);
      plan.add(kCount, {0, 0}, 0, 77, exact, Method::kOneShot);
      TrialRunner runner(node, plan);
      runner.run();
      const Trial& trial = plan.trials()[0];
      const size_t size = element_size(element);
      std::vector<std::vector<unsigned char>> sent;
      std::vector<const unsigned char*> inputs;
      for (uint32_t r = 0; r < kRanks; ++r) sent.push_back(runner.sent(r));
      for (const auto& s : sent) inputs.push_back(s.data() + trial.send_first * size);
      const std::vector<unsigned char> received = runner.received(0);
      for (uint32_t i = 0; i < kCount; ++i) {
        const uint64_t got = element_at(received.data() + trial.receive_first * size, size, i),
                       want = expected(element, reduction, inputs, i);
        ASSERT_TRUE(got == want || (is_nan(element, got) && is_nan(element, want)))
            << name_of(element) << " " << name_of(reduction) << " element " << i << ": " << std::hex << got
            << ", expected " << want;
      }
    }
  });
}

std::vector<Parameters> all_methods(const std::vector<uint32_t>& all_ranks) {
  std::vector<Parameters> all;
  for (uint32_t method = 0; method < kMethods; ++method)
    for (const uint32_t ranks : all_ranks) all.push_back({static_cast<Method>(method), ranks});
  return all;
}

std::vector<Parameters> in_host_memory(const std::vector<uint32_t>& all_ranks) {
  std::vector<Parameters> all;
  for (const Method method : {Method::kOneShotPull, Method::kTwoShotPull})
    for (const uint32_t ranks : all_ranks) all.push_back({method, ranks, StagingKind::kHost});
  return all;
}

std::vector<Parameters> other_islands() {
  const auto with = [](uint32_t ranks, Partition partition) {
    return Parameters{Method::kIslands, ranks, StagingKind::kPeer, partition};
  };
  return {
      with(8, Partition::kThreeAndRest), with(8, Partition::kInterleaved), with(8, Partition::kFour),
      with(9, Partition::kTwoEqual),     with(11, Partition::kTwoEqual),   with(11, Partition::kThreeAndRest),
      with(16, Partition::kTwoEqual),    with(16, Partition::kFour),       with(16, Partition::kInterleaved)};
}

INSTANTIATE_TEST_SUITE_P(Small, SmallMatrix, testing::ValuesIn(all_methods({2, 4})), test_name);
INSTANTIATE_TEST_SUITE_P(SmallHostMemory, SmallMatrix, testing::ValuesIn(in_host_memory({2, 4})), test_name);

INSTANTIATE_TEST_SUITE_P(All, Matrix, testing::ValuesIn(all_methods({2, 3, 4, 5, 6, 7, 8})), test_name);
INSTANTIATE_TEST_SUITE_P(HostMemory, Matrix, testing::ValuesIn(in_host_memory({2, 3, 4, 5, 6, 7, 8})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Islands, Matrix, testing::ValuesIn(other_islands()), test_name);

INSTANTIATE_TEST_SUITE_P(All, Counts, testing::ValuesIn(all_methods({2, 3, 4, 8})), test_name);

INSTANTIATE_TEST_SUITE_P(All, Wrap, testing::ValuesIn(all_methods({2, 5, 8})), test_name);
INSTANTIATE_TEST_SUITE_P(HostMemory, Wrap, testing::ValuesIn(in_host_memory({4})), test_name);
INSTANTIATE_TEST_SUITE_P(Islands, Wrap,
                         testing::Values(Parameters{Method::kIslands, 16, StagingKind::kPeer,
                                                    Partition::kFour}),
                         test_name);

/// The method is not looked at.
INSTANTIATE_TEST_SUITE_P(All, Mixed,
                         testing::Values(Parameters{.ranks = 2}, Parameters{.ranks = 3},
                                         Parameters{.ranks = 4}, Parameters{.ranks = 6},
                                         Parameters{.ranks = 8},
                                         Parameters{.ranks = 8, .partition = Partition::kInterleaved},
                                         Parameters{.ranks = 16, .partition = Partition::kFour}),
                         [](const auto& tested) {
                           const std::string name = test_name(tested);
                           return name.substr(name.find_first_of("0123456789"));
                         });

}  // namespace
}  // namespace onehop::test
