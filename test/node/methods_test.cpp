// Every method by its name: what it takes, in one operation and in several, alone and in graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "plugin/plan.hpp"
#include "test/node/job.hpp"

namespace onehop::node {
namespace {

struct Name {
  const char* text;  ///< of ONEHOP_ALGO
  Algo algo;
  const char* in_device;          ///< as the ON line says it
  const char* in_host = nullptr;  ///< with staging in host memory; null: not served there
};

std::ostream& operator<<(std::ostream& out, const Name& name) {
  return out << name.text;
}

constexpr Name kNames[] = {
    {"oneshot", Algo::kOneShot, "one-shot push", "one-shot pull"},
    {"twoshot", Algo::kTwoShot, "two-shot push", "two-shot pull"},
    {"oneshot-push", Algo::kOneShotPush, "one-shot push"},
    {"twoshot-push", Algo::kTwoShotPush, "two-shot push"},
    {"oneshot-staged", Algo::kOneShotStaged, "one-shot staged"},
    {"twoshot-staged", Algo::kTwoShotStaged, "two-shot staged"},
    {"oneshot-pull", Algo::kOneShotPull, "one-shot pull", "one-shot pull"},
    {"twoshot-pull", Algo::kTwoShotPull, "two-shot pull", "two-shot pull"},
    {"islands", Algo::kIslands, "islands"},
};

constexpr const char* kLimit = "65536";  ///< of most jobs: small calls, which flag words divide all the same

/// Small calls of several types, the largest, and those around one operation. Flag words take twice the room,
/// so the larger of their calls take several operations whatever the method.
std::string sizes_for(Algo algo, StagingKind kind, int ranks) {
  constexpr struct {
    const char* name;
    nccl::DataType type;
  } kFlags[] = {
      {"uint32", nccl::kUint32}, {"int64", nccl::kInt64}, {"fp64", nccl::kFloat64}, {"int8", nccl::kInt8}};
  const auto& [name, type] = kFlags[static_cast<size_t>(ranks) % std::size(kFlags)];
  Settings settings;
  settings.algo = algo;
  settings.max_bytes = std::stoull(kLimit);
  const Result<Plan> plan = make_plan(settings, kind, static_cast<uint32_t>(ranks));
  EXPECT_TRUE(plan) << plan.reason();
  const size_t piece = decide({1, type, nccl::kSum}, *plan).served->piece,
               most = settings.max_bytes / bytes_of(type);
  EXPECT_LT(piece, most) << "no call of " << name << " is divided";
  const std::string text = "int8 1 15 17, bf16 3 32768, fp32 4097, ";
  return text + name + " " + std::to_string(piece) + " " + std::to_string(piece + 1) + " " +
         std::to_string(most);
}

/// Runs a job of `sizes` and expects that it is on, with this line.
void run_on(Job job, std::initializer_list<std::string> parts) {
  job.scenario = "sizes";
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> on =
      outcome.log("ON for a communicator of " + std::to_string(job.ranks) + " ranks");
  ASSERT_EQ(on.size(), 1u) << "with " << job.argument;
  // Which ranks the islands are is for other tests.
  const std::string line = std::regex_replace(on[0], std::regex(R"( \([0-9,/]+\))"), "");
  for (const std::string& part : parts) EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
  EXPECT_TRUE(outcome.log("OFF for").empty());
}

std::string up_to(const char* method, const char* bytes, const char* memory) {
  return std::string(": ") + method + " up to " + bytes +
         " bytes; all types and built-in operators; staging in " + memory + " memory, ";
}

class Methods : public testing::TestWithParam<Name> {};
INSTANTIATE_TEST_SUITE_P(All, Methods, testing::ValuesIn(kNames));

// Protects: the protocol of each method over real shared memory, its piece, and the loop over pieces.
TEST_P(Methods, TakeCallsOfOneAndOfSeveralOperations) {
  const auto [text, algo, in_device, in_host] = GetParam();
  const Environment environment = {{"ONEHOP_ALGO", text}, {"ONEHOP_MAX_BYTES", kLimit}};
  for (int ranks = 2; ranks <= 8; ++ranks)
    run_on(
        {.ranks = ranks, .argument = sizes_for(algo, StagingKind::kPeer, ranks), .environment = environment},
        {up_to(in_device, kLimit, "device")});
}

// Protects: a call of many operations, which needs all of the memory that there may be.
TEST_P(Methods, TakeTheLargestCallThereIs) {
  const auto [text, algo, in_device, in_host] = GetParam();
  const Environment environment = {{"ONEHOP_ALGO", text}, {"ONEHOP_MAX_BYTES", "8M"}};
  run_on({.argument = "fp32 2097152", .environment = environment}, {up_to(in_device, "8388608", "device")});
}

// Protects: the same methods over memory that the host shares.
TEST(MethodsInHostMemory, TakeCallsOfOneAndOfSeveralOperations) {
  for (const auto& [text, algo, in_device, in_host] : kNames) {
    if (in_host == nullptr) continue;
    const Environment environment = {
        {"ONEHOP_ALGO", text}, {"ONEHOP_MAX_BYTES", kLimit}, {"ONEHOP_STAGING", "host"}};
    for (const int ranks : {2, 5, 8})
      run_on({.ranks = ranks,
              .argument = sizes_for(algo, StagingKind::kHost, ranks),
              .environment = environment},
             {up_to(in_host, kLimit, "host")});
  }
}

// Protects: another name of the same method.
TEST(Aliases, AreTheirMethods) {
  const char* sizes = "fp32 1 4096";
  run_on({.argument = sizes, .environment = {{"ONEHOP_ALGO", "1stage"}}},
         {": one-shot push up to 524288 bytes;"});
  run_on({.argument = sizes, .environment = {{"ONEHOP_ALGO", "2stage"}}},
         {": two-shot push up to 524288 bytes;"});
  run_on({.argument = sizes, .environment = {{"ONEHOP_ALGO", "2stage"}, {"ONEHOP_STAGING", "host"}}},
         {": two-shot pull up to 524288 bytes;"});
}

/// The methods that auto does not choose in the other tests of this folder.
class OtherMethods : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, OtherMethods,
                         testing::Values("twoshot-push", "oneshot-staged", "twoshot-staged", "oneshot-pull",
                                         "twoshot-pull", "islands"));

// Protects: the arithmetic of every type and operator, rank order and rounding once, with each method: the
// bits are those of the reference, so those of every other method.
TEST_P(OtherMethods, ReduceEveryTypeWithEveryOperator) {
  const Environment environment = {{"ONEHOP_MAX_BYTES", "8K"}, {"ONEHOP_ALGO", GetParam()}};
  run_counted({.scenario = "reductions", .ranks = 3, .argument = "97 8192", .environment = environment});
}

// Protects: epochs and slots of each method where calls follow each other without the host, and mixed with
// calls of other streams.
TEST_P(OtherMethods, KeepTheirOrderInGraphsAndStreams) {
  const Environment environment = {{"ONEHOP_MAX_BYTES", "64K"}, {"ONEHOP_ALGO", GetParam()}};
  run_counted({.scenario = "graphs", .ranks = 3, .environment = environment});
}

// Protects: a kernel that waits in a second hop hears of an abort too.
TEST_P(OtherMethods, LeaveTheirWaitsAtAnAbort) {
  run_counted({.scenario = "abort_one", .ranks = 4, .environment = {{"ONEHOP_ALGO", GetParam()}}});
}

// Protects: peers by pointer and peers by handle, with each method.
TEST_P(OtherMethods, ServeSeveralGpusOfAProcess) {
  const Environment environment = {{"ONEHOP_ALGO", GetParam()}};
  run_counted({.scenario = "one_thread", .ranks = 1, .argument = "4", .environment = environment});
  run_counted({.scenario = "two_each", .ranks = 2, .environment = environment});
}

// Protects: small and large calls of one communicator, which auto serves with different methods.
TEST(Auto, ServesSmallCallsInOneHopAndLargeOnesInTwo) {
  const std::string sizes = "fp32 1 4096 4097 16384 16385 32768 32769, int32 8192 8193 16385, bf16 65537";
  run_on({.ranks = 4, .argument = sizes},
         {"one-shot push up to 131072 bytes, two-shot push up to 524288 bytes;"});
  run_on({.ranks = 5, .argument = sizes},
         {"one-shot push up to 65536 bytes, two-shot push up to 524288 bytes;"});
  run_on({.ranks = 4, .argument = sizes, .environment = {{"ONEHOP_STAGING", "host"}}},
         {"one-shot pull up to 16384 bytes, two-shot pull up to 524288 bytes;"});
}

// Protects: many operations of many ranks, one behind the other.
TEST(Auto, ServesTheLargestCallThereIs) {
  const Environment limit = {{"ONEHOP_MAX_BYTES", "8M"}};
  run_on({.ranks = 5, .argument = "bf16 4194304", .environment = limit},
         {"two-shot push up to 8388608 bytes;"});
}

// Protects: what is measured differs between ranks and from run to run; what comes of it must not differ
// between ranks.
TEST(Auto, MeasuredIsTheSameOnAllRanks) {
  const Environment environment = {
      {"ONEHOP_MEASURE", "quick"}, {"ONEHOP_MAX_BYTES", "64K"}, {"ONEHOP_STANDIN_TIMES", "1"}};
  const Outcome outcome =
      run({.scenario = "plain", .ranks = 3, .argument = "65536", .environment = environment});
  EXPECT_EQ(outcome.log(" for a communicator of 3 ranks: ").size(), 1u);
  for (const Process& process : outcome.processes)
    EXPECT_EQ(process.counted(), outcome.processes[0].counted());
}

struct Division {
  int ranks;
  const char* islands;
};

class Partitions : public testing::TestWithParam<Division> {};
INSTANTIATE_TEST_SUITE_P(Some, Partitions,
                         testing::Values(Division{9, "auto"}, Division{12, "auto"}, Division{16, "auto"},
                                         Division{4, "0,2/1,3"}, Division{4, "3/0-2"},
                                         Division{5, "0/1/2/3/4"}, Division{6, "0,5/1,4/2,3"},
                                         Division{12, "0-3/4-7/8-11"}, Division{9, "0,3,6/1,4,7/2,5,8"},
                                         Division{9, "0-7/8"},
                                         Division{16, "0,2,4,6,8,10,12,14/1,3,5,7,9,11,13,15"}));

// Protects: partners and nobody else are mapped, sums pass from run to run, and more than eight ranks are
// served.
TEST_P(Partitions, AreServedByIslands) {
  const auto [ranks, islands] = GetParam();
  Job job = {.ranks = ranks, .environment = {{"ONEHOP_ISLANDS", islands}, {"ONEHOP_MAX_BYTES", "16K"}}};
  if (ranks <= 8) job.environment["ONEHOP_ALGO"] = "islands";
  job.argument = "bf16 1 7 1000, int64 5 2048, int8 10001";
  run_on(job, {up_to("islands", "16384", "device")});
}

// Protects: the order of the additions, which must not depend on the partition.
TEST(Partitions, HaveTheBitsOfAllOtherMethods) {
  for (const char* islands : {"0,2/1", "0/1,2", "0/1/2"})
    run_counted({.scenario = "reductions",
                 .ranks = 3,
                 .argument = "97 8192",
                 .environment = {
                     {"ONEHOP_MAX_BYTES", "8K"}, {"ONEHOP_ALGO", "islands"}, {"ONEHOP_ISLANDS", islands}}});
}

}  // namespace
}  // namespace onehop::node
