// Ranks of one machine in containers: namespaces, small or missing /dev/shm, other users, and GPUs that each
// rank sees under another number. Each works, or is declined with the reason, within seconds.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "test/node/job.hpp"
#include "test/node/names.hpp"

namespace onehop::node {
namespace {

constexpr uid_t kUser = 4711;  // nobody's
constexpr char kNeedsRoot[] = "without root these come with a user namespace, which closes /proc";

/// Runs `plain` and expects that all calls are taken ("ON"), or none ("OFF"), that the one line says so with
/// all these parts, that it took no more than seconds, and that nothing is left.
void expect_verdict(const char* verdict, Job job, std::initializer_list<std::string> parts) {
  for (int rank = 0; rank < job.ranks; ++rank) {
    const auto at = job.confined.find(rank);
    if (const auto why = cannot_enter(at != job.confined.end() ? at->second : job.confinement))
      GTEST_SKIP() << *why;
  }
  const bool on = verdict == std::string("ON");
  job.scenario = "plain";
  job.argument = on ? "524288" : "declined";
  job.deadline_s = 30;
  const std::set<std::string> before = names();
  const Outcome outcome = run_counted(job);
  const std::vector<std::string> lines = outcome.log(" for a communicator");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(std::string(verdict) + " for"), std::string::npos) << lines[0];
  for (const std::string& part : parts)
    EXPECT_NE(lines[0].find(part), std::string::npos) << part << ": " << lines[0];
  EXPECT_EQ(new_name(before), "");
}

Confinement in(int namespaces) {
  return {.namespaces = namespaces};
}
const Environment kHost = {{"ONEHOP_STAGING", "host"}};

// Protects: containers without --pid=host. Device memory cannot be opened there, host memory can.
TEST(Containers, OfTheirOwnPidNamespace) {
  for (const int more : {0, CLONE_NEWIPC | CLONE_NEWUTS})
    expect_verdict("ON", {.ranks = 3, .confinement = in(CLONE_NEWPID | more)},
                   {"staging in host memory, ", "because not staging in device memory: rank 0 cannot reach"});
  // One of them alone, of several GPUs each or not.
  expect_verdict("ON", {.ranks = 3, .environment = kHost, .confined = {{1, in(CLONE_NEWPID)}}},
                 {"staging in host memory, "});
}

// Protects: several ranks of one thread must all send before one of them waits.
TEST(Containers, OfTheirOwnPidNamespaceWithTwoGpusEach) {
  if (const auto why = cannot_enter(in(CLONE_NEWPID))) GTEST_SKIP() << *why;
  const Outcome outcome = run_counted({.scenario = "two_each", .ranks = 3, .confinement = in(CLONE_NEWPID)});
  EXPECT_EQ(outcome.log("ON for a communicator of 6 ranks").size(), 1u);
}

// Protects: --ipc=private and a host name of its own are no other node.
TEST(Containers, OfTheirOwnIpcAndUtsNamespacesAreOneNode) {
  if (getuid() != 0) GTEST_SKIP() << kNeedsRoot;
  expect_verdict("ON", {.confinement = in(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS)},
                 {"staging in device memory, "});
}

// Protects: no socket reaches another network namespace; the owner's /proc does.
TEST(Containers, OfTheirOwnNetworkNamespace) {
  if (getuid() != 0) GTEST_SKIP() << kNeedsRoot;
  expect_verdict("ON", {.ranks = 3, .environment = kHost, .confinement = in(CLONE_NEWNET)},
                 {"staging in host memory, "});
  expect_verdict("ON", {.ranks = 3, .environment = kHost, .confined = {{2, in(CLONE_NEWNET)}}},
                 {"staging in host memory, "});
}

// Protects: where there is no way at all, everybody says so.
TEST(Containers, OfTheirOwnPidAndNetworkNamespacesAreDeclined) {
  expect_verdict(
      "OFF", {.ranks = 3, .confinement = in(CLONE_NEWPID | CLONE_NEWNET)},
      {"staging in device memory: rank 0 cannot reach the staging memory of a peer: ",
       "staging in host memory: rank 0 cannot reach the staging memory of a peer: ", "PID namespace"});
  expect_verdict("OFF",
                 {.ranks = 3, .environment = kHost, .confined = {{1, in(CLONE_NEWPID | CLONE_NEWNET)}}},
                 {"staging in host memory: rank 0 cannot reach the staging memory of a peer: "});
}

// Protects: a user namespace for each rank, as Apptainer makes them: no right to look into each other.
TEST(Containers, OfTheirOwnUserNamespace) {
  expect_verdict("ON", {.ranks = 3, .confinement = in(CLONE_NEWUSER)}, {"staging in host memory, "});
  expect_verdict("ON", {.ranks = 3, .confinement = in(CLONE_NEWUSER | CLONE_NEWPID)},
                 {"staging in host memory, "});
  expect_verdict("ON", {.ranks = 3, .environment = kHost, .confined = {{0, in(CLONE_NEWUSER)}}},
                 {"staging in host memory, "});
  // Nobody can tell who the other is.
  expect_verdict("OFF", {.confinement = in(CLONE_NEWUSER | CLONE_NEWNET)},
                 {"is in another user namespace, and no socket tells which user it is",
                  "staging in host memory: rank 0 cannot reach"});
}

// Protects: the default of 64 MB in containers, and none at all.
TEST(Containers, WithLittleOrNoSharedMemoryFileSystem) {
  for (const Shm shm : {Shm::kSmall, Shm::kNone}) {
    expect_verdict("ON", {.environment = kHost, .confinement = {.shm = shm}}, {"staging in host memory, "});
    expect_verdict("ON", {.confinement = {.namespaces = CLONE_NEWPID, .shm = shm}},
                   {"staging in host memory, "});
  }
}

// Protects: another user's memory, whoever may open it.
TEST(Users, ThatDifferAreDeclined) {
  const Confinement other = {.user = kUser};
  for (const int rank : {0, 1})
    expect_verdict("OFF", {.ranks = 2, .confined = {{rank, other}}},
                   {"rank 1 runs as another user than rank 0"});
  // In user namespaces of their own the numbers say nothing, and the kernel tells.
  for (const Environment& environment : {Environment{}, kHost})
    expect_verdict("OFF",
                   {.ranks = 2,
                    .environment = environment,
                    .confined = {{1, {.namespaces = CLONE_NEWUSER, .user = kUser}}}},
                   {"runs as another user, or as one that this user namespace does not know"});
}

TEST(Users, OtherThanRootAreServed) {
  expect_verdict("ON", {.ranks = 3, .confinement = {.user = kUser}}, {"staging in device memory, "});
  expect_verdict("ON", {.ranks = 3, .environment = kHost, .confinement = {.user = kUser}},
                 {"staging in host memory, "});
}

// Protects: a launcher that gives each rank one GPU, in whatever order. Ranks are told apart by the identity
// of the GPU: ordinal 0 of one is not that of another.
TEST(Visibility, OfOneGpuEach) {
  const auto one_each = [](std::initializer_list<const char*> devices, Environment environment) {
    Job job = {.ranks = static_cast<int>(devices.size()), .environment = std::move(environment)};
    int rank = 0;
    for (const char* device : devices) job.of[rank++] = {{"CUDA_VISIBLE_DEVICES", device}};
    return job;
  };
  for (const char* measure : {"off", "quick"}) {
    // With measuring, ranks that share a GPU would be said to; the stand-in is named where they do not.
    const std::string why = measure == std::string("off") ? "" : "not measured: this is the CPU stand-in";
    expect_verdict("ON", one_each({"3", "1", "2", "0"}, {{"ONEHOP_MEASURE", measure}}),
                   {"staging in device memory, ", why});
    expect_verdict("ON", one_each({"2,3,0,1", "3,1,0", "0,1,3"}, {{"ONEHOP_MEASURE", measure}}),
                   {"staging in device memory, ", why});
  }
  expect_verdict(
      "ON",
      one_each({"GPU-6f6e6568-6f70-2d73-7461-6e64696e0005", "GPU-6f6e6568-6f70-2d73-7461-6e64696e0000"},
               {{"ONEHOP_MEASURE", "quick"}}),
      {"staging in device memory, ", "not measured: this is the CPU stand-in"});
  expect_verdict("ON", one_each({"3", "1", "2", "0"}, kHost), {"staging in host memory, "});
  // The control: these do share one.
  expect_verdict("ON",
                 one_each({"2", "2"}, {{"ONEHOP_MEASURE", "quick"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}}),
                 {"not measured: ranks share a GPU"});
}

}  // namespace
}  // namespace onehop::node
