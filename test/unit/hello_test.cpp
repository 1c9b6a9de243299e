// The verdict that every rank draws from the same table of records.
#include "plugin/setup/hello.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "onehop/onehop.h"
#include "plugin/setup/member.hpp"
#include "plugin/setup/progress.hpp"
#include "test/protocol/random.hpp"

namespace onehop::test {
namespace {

static_assert(sizeof(Hello) == Member::kRecordBytes);

using Table = std::vector<Hello>;

/// Ranks that have nothing against each other: one node, one process and one GPU each.
Table good_table(uint32_t ranks) {
  Table table(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    Hello& hello = table[r];
    hello.rank = r;
    hello.ranks = ranks;
    hello.host = 11;
    hello.process = 100 + r;
    hello.settings = 22;
    hello.free_memory = uint64_t{1} << (30 + r);
    hello.gpu.fill(static_cast<unsigned char>(r));
    put_text(hello.pci, "0000:3b:00." + std::to_string(r));
    put_text(hello.version, ONEHOP_VERSION);
    hello.pid = static_cast<int32_t>(1000 + r);
  }
  return table;
}

TEST(Verdict, AgreeingRanksAreNotDeclined) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
    EXPECT_EQ(verdict_of(good_table(ranks)), std::nullopt);
}

/// Ranks in one process, on one GPU, in containers with equal process ids: all of this is served.
TEST(Verdict, SharingAProcessOrAGpuIsNoReason) {
  Table table = good_table(4);
  for (Hello& hello : table) {
    hello.process = 100;
    hello.pid = 1;
    hello.gpu = {};
    hello.pci = {};
    hello.free_memory = 0;
  }
  EXPECT_EQ(verdict_of(table), std::nullopt);
}

struct Fault {
  const char* name;
  std::function<void(Hello&)> apply;
  std::string reason;  ///< part of the verdict; %r stands for the rank
};

void veto(Hello& hello, Veto why, const std::string& text) {
  hello.veto = why;
  put_text(hello.veto_text, text);
}

void fill(Hello& hello, unsigned char byte) {
  std::memset(static_cast<void*>(&hello), byte, sizeof(hello));
}

/// `text` with %r replaced by a rank.
std::string of_rank(const std::string& text, uint32_t rank) {
  const size_t at = text.find("%r");
  return at == std::string::npos ? text : text.substr(0, at) + std::to_string(rank) + text.substr(at + 2);
}

const Fault kFaults[] = {
    {"no record", [](Hello& h) { fill(h, 0); }, "rank %r sent no record of onehop"},
    {"all ones", [](Hello& h) { fill(h, 0xFF); }, "rank %r sent no record of onehop"},
    {"version", [](Hello& h) { put_text(h.version, "9.9.9"); },
     "rank %r runs onehop 9.9.9, rank 0 runs " ONEHOP_VERSION},
    {"wire", [](Hello& h) { ++h.wire; }, "rank %r runs onehop"},
    {"rank", [](Hello& h) { h.rank += 1; }, "rank %r says it is rank "},
    {"ranks", [](Hello& h) { h.ranks += 1; }, "rank %r says it is rank "},
    {"disabled", [](Hello& h) { veto(h, Veto::kDisabled, ""); }, "ONEHOP_ENABLE=0 (rank %r)"},
    {"bad setting", [](Hello& h) { veto(h, Veto::kBadSetting, "ONEHOP_ALGO=1-stage"); },
     "ONEHOP_ALGO=1-stage (rank %r)"},
    {"NCCL's switch", [](Hello& h) { veto(h, Veto::kNcclSwitch, "NCCL_ALGO=Ring"); },
     "NCCL_ALGO=Ring (rank %r)"},
    {"resources", [](Hello& h) { veto(h, Veto::kResources, "no memory"); }, "no memory (rank %r)"},
    {"NCCL version", [](Hello& h) { veto(h, Veto::kNcclVersion, "NCCL 9"); }, "NCCL 9 (rank %r)"},
    {"a later veto", [](Hello& h) { h.veto = static_cast<Veto>(77); },
     "a reason that this version does not know (rank %r)"},
    {"host", [](Hello& h) { ++h.host; }, "on another node"},
    {"no host", [](Hello& h) { h.host = 0; }, "rank %r cannot tell its node"},
    {"settings", [](Hello& h) { ++h.settings; }, "ONEHOP_ settings differ between rank 0 and rank "},
};

TEST(Verdict, EachMismatchAloneIsNamed) {
  for (const Fault& fault : kFaults)
    for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
      for (uint32_t r = 0; r < ranks; ++r) {
        Table table = good_table(ranks);
        fault.apply(table[r]);
        const auto verdict = verdict_of(table);
        ASSERT_TRUE(verdict) << fault.name << " of rank " << r << " of " << ranks;
        // Where two ranks differ, rank 0 is the measure: if it is the odd one, the first other is named.
        const bool compared = fault.reason.find("rank 0") != std::string::npos ||
                              fault.reason == "rank %r runs onehop" || fault.reason == "on another node";
        if (compared && r == 0) continue;
        EXPECT_NE(verdict->find(of_rank(fault.reason, r)), std::string::npos)
            << fault.name << ": " << *verdict;
      }
}

TEST(Verdict, BlockingLaunchesMatterOnlyWithinOneProcess) {
  Table table = good_table(4);
  for (Hello& hello : table) hello.launches_block = 1;
  EXPECT_EQ(verdict_of(table), std::nullopt);
  for (size_t a = 0; a < 4; ++a)
    for (size_t b = a + 1; b < 4; ++b) {
      Table shared = table;
      shared[b].process = shared[a].process;
      const std::string pair = "rank " + std::to_string(a) + " and rank " + std::to_string(b);
      const auto verdict = verdict_of(shared);
      ASSERT_TRUE(verdict) << pair;
      EXPECT_EQ(verdict->find("CUDA_LAUNCH_BLOCKING=1 with " + pair + " in one process"), 0u) << *verdict;
      // One of the two is enough, whichever it is.
      for (const size_t without : {a, b}) {
        Table half = shared;
        half[without].launches_block = 0;
        EXPECT_TRUE(verdict_of(half)) << pair;
      }
    }
}

/// Memory of another user is not mapped. Numbers of users say something within a user namespace alone.
TEST(Verdict, UsersAreComparedWithinTheirNamespace) {
  for (uint32_t r = 0; r < 3; ++r) {
    Table table = good_table(3);
    for (Hello& hello : table) hello.user = 1000, hello.user_namespace = 5;
    EXPECT_EQ(verdict_of(table), std::nullopt);
    EXPECT_FALSE(users_are_unclear(table));
    table[r].user = 0;
    EXPECT_EQ(verdict_of(table),
              r == 2 ? "rank 2 runs as another user than rank 0" : "rank 1 runs as another user than rank 0");
    table[r].user_namespace = 6;
    EXPECT_EQ(verdict_of(table), std::nullopt) << "the kernel will tell";
    EXPECT_TRUE(users_are_unclear(table));
  }
  // Two in one namespace, and the first rank in another.
  Table table = good_table(3);
  table[0].user_namespace = 6;
  table[2].user = 7;
  EXPECT_EQ(verdict_of(table), "rank 2 runs as another user than rank 1");
}

TEST(Verdict, IsOneLineWhateverAPeerSent) {
  Table table = good_table(2);
  veto(table[1], Veto::kResources, "no memory\n[time] onehop: forged\x1b[2J\x7f");
  EXPECT_EQ(verdict_of(table), "no memory?[time] onehop: forged?[2J? (rank 1)");
}

/// A job of different releases: the version is the reason, whatever else their records mean.
TEST(Verdict, VersionsComeBeforeEverythingThatDependsOnThem) {
  Table table = good_table(3);
  put_text(table[2].version, "9.9.9");
  veto(table[1], Veto::kResources, "no memory");
  ++table[1].host;
  EXPECT_EQ(verdict_of(table), "rank 2 runs onehop 9.9.9, rank 0 runs " ONEHOP_VERSION);
}

/// One node's rank must not begin to exchange memory handles while another node's declines.
TEST(Verdict, ComesFromTheTableAlone) {
  Random random(5);
  std::vector<Table> tables;
  for (const Fault& fault : kFaults) {
    tables.push_back(good_table(4));
    fault.apply(tables.back()[random.next() % 4]);
  }
  tables.push_back(good_table(2));
  std::vector<std::optional<std::string>> forwards, backwards(tables.size());
  for (const Table& table : tables) forwards.push_back(verdict_of(table));
  // Asked in another order, from a copy elsewhere, with other settings of this process.
  setenv("ONEHOP_ENABLE", "0", 1);
  setenv("NCCL_HOSTID", "other", 1);
  for (size_t i = tables.size(); i-- > 0;) backwards[i] = verdict_of(Table(tables[i]));
  unsetenv("ONEHOP_ENABLE");
  unsetenv("NCCL_HOSTID");
  EXPECT_EQ(forwards, backwards);
}

void fill_random(Hello& hello, Random& random) {
  std::array<unsigned char, sizeof(Hello)> bytes;
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next() >> 16);
  std::memcpy(static_cast<void*>(&hello), bytes.data(), bytes.size());
}

TEST(Verdict, GarbageIsDeclined) {
  Random random(7);
  for (int round = 0; round < 5000; ++round) {
    const auto ranks = static_cast<uint32_t>(2 + random.next() % 7);
    Table table = good_table(ranks);
    fill_random(table[random.next() % ranks], random);
    const auto verdict = verdict_of(table);
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->empty());
  }
}

/// As above, but with the fields right that are looked at first, so that the later ones are reached: texts
/// without a zero, vetoes and versions that nobody knows.
TEST(Verdict, GarbageBehindAGoodHeadIsDeclined) {
  Random random(9);
  for (int round = 0; round < 5000; ++round) {
    const auto ranks = static_cast<uint32_t>(2 + random.next() % 7);
    const auto r = static_cast<uint32_t>(random.next() % ranks);
    Table table = good_table(ranks);
    Hello& hello = table[r];
    const Hello good = hello;
    fill_random(hello, random);
    hello.magic = good.magic;
    if (round % 8 > 0) hello.wire = good.wire;
    if (round % 8 > 1) hello.rank = r, hello.ranks = ranks;
    if (round % 8 > 2) hello.version = good.version;
    if (round % 8 > 3) hello.veto = static_cast<Veto>(random.next() % 8);
    if (round % 8 > 5) hello.host = good.host;
    const auto verdict = verdict_of(table);
    ASSERT_TRUE(verdict);
    EXPECT_LE(verdict->size(), 256u) << "longer than the text that a user can ask for";
  }
}

/// Every byte of a record is either agreed on or free to differ; a new field must be put into one list.
TEST(Verdict, EveryByteThatMustAgreeIsCompared) {
  const auto holds = [](size_t byte, size_t begin, size_t size) {
    return byte >= begin && byte < begin + size;
  };
  const auto free_to_differ = [&](size_t byte) {
    return holds(byte, offsetof(Hello, process), 8) || holds(byte, offsetof(Hello, free_memory), 8) ||
           holds(byte, offsetof(Hello, gpu), 16) || holds(byte, offsetof(Hello, pci), 16) ||
           holds(byte, offsetof(Hello, pid), 4) || holds(byte, offsetof(Hello, launches_block), 4) ||
           holds(byte, offsetof(Hello, veto_text), 96) || holds(byte, offsetof(Hello, takes_fp8), 4) ||
           holds(byte, offsetof(Hello, avoids_peers), 4) || holds(byte, offsetof(Hello, failed_probes), 4) ||
           holds(byte, offsetof(Hello, padding), 4) || holds(byte, offsetof(Hello, nonce), 8) ||
           holds(byte, offsetof(Hello, user_namespace), 8) || holds(byte, offsetof(Hello, plan), 8) ||
           holds(byte, offsetof(Hello, reserved), 4);
  };
  for (uint32_t r = 0; r < 3; ++r)
    for (size_t byte = 0; byte < sizeof(Hello); ++byte) {
      Table table = good_table(3);
      reinterpret_cast<unsigned char*>(&table[r])[byte] ^= 0x40;
      EXPECT_EQ(verdict_of(table).has_value(), !free_to_differ(byte)) << "byte " << byte << " of rank " << r;
    }
}

/// The part that no release may move: ranks of different releases read it from each other.
TEST(Hello, KeepsItsFirstBytes) {
  EXPECT_EQ(offsetof(Hello, magic), 0u);
  EXPECT_EQ(offsetof(Hello, wire), 8u);
  const char magic[] = "onehop1";
  const Hello hello;
  EXPECT_EQ(std::memcmp(&hello, magic, sizeof(magic)), 0);
}

TEST(HostIdentity, IsStableAndFollowsNcclHostid) {
  unsetenv("NCCL_HOSTID");
  const uint64_t here = host_identity();
  EXPECT_EQ(host_identity(), here);
  setenv("NCCL_HOSTID", "a", 1);
  const uint64_t a = host_identity();
  EXPECT_NE(a, here);
  setenv("NCCL_HOSTID", "b", 1);
  EXPECT_NE(host_identity(), a);
  unsetenv("NCCL_HOSTID");
  EXPECT_EQ(host_identity(), here);
}

}  // namespace
}  // namespace onehop::test
