// Where words lie: each has a place of its own, in its sender's region, that the clearing reaches and the
// region holds; in an outbox always with the same readers; and what is sent is what is awaited, no more and
// no less.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "test/protocol/partition.hpp"
#include "test/protocol/ranks.hpp"
#include "test/protocol/scale.hpp"

namespace onehop::test {
namespace {

/// Ordinary memory that keeps the addresses of one operation.
class RecordingFabric {
 public:
  class Memory : public HostMemory {
   public:
    Memory(RecordingFabric& fabric, uint32_t rank) : fabric_(fabric), rank_(rank) {}
    void send(Pack* to, const Pack& pack) {
      {
        std::lock_guard lock(fabric_.mutex_);
        ++fabric_.sent[{to, rank_}];
      }
      HostMemory::send(to, pack);
    }
    Pack receive(const Pack* from) {
      {
        std::lock_guard lock(fabric_.mutex_);
        ++fabric_.received[{from, rank_}];
      }
      return HostMemory::receive(from);
    }
    Pack peek(const Pack* from) { return receive(from); }

   private:
    RecordingFabric& fabric_;
    uint32_t rank_;
  };

  void attach(const CommView&) {}
  Memory memory(uint32_t rank, uint32_t) { return {*this, rank}; }
  void begin(uint32_t, uint32_t) {}
  std::string end(uint32_t, uint32_t) { return {}; }

  using Uses = std::map<std::pair<const Pack*, uint32_t>, uint32_t>;  ///< by address and rank
  Uses sent, received;

 private:
  std::mutex mutex_;
};

struct Case {
  const char* partition;
  Element element;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.partition << ", element " << static_cast<int>(c.element);
}

class Places : public testing::TestWithParam<Case> {
 protected:
  void expect_right_places(Method method, uint32_t packs, uint32_t most) {
    const auto [partition, element] = GetParam();
    const auto ranks = static_cast<uint32_t>(std::strlen(partition));
    const size_t lanes = sizeof(Pack) / element_size(element);
    SCOPED_TRACE(std::string(name_of(method)) + ", " + std::to_string(packs) + " of " + std::to_string(most));
    RecordingFabric fabric;
    const Script script{plain_step(element, packs * lanes - lanes / 2, ranks, packs, method)};
    Ranks run(fabric, script, options());
    const Outcome outcome = run.run();
    ASSERT_TRUE(outcome.problems.empty()) << outcome.text();

    const WordKind kind = word_kind(element);
    const Layout& layout = options().layout;
    const Turn turn = first_turn();
    const auto place = [&](const Pack* pack, uint32_t owner) {
      return static_cast<uint32_t>(pack - reinterpret_cast<const Pack*>(run.comm(owner).own));
    };
    const auto owner_of = [&](const Pack* pack) {
      uint32_t owner = 0;
      while (pack < reinterpret_cast<const Pack*>(run.comm(owner).own) ||
             place(pack, owner) >= layout.bytes() / 16)
        ++owner;
      return owner;
    };
    // The inbox's words must lie where they will be emptied; an outbox's are not emptied.
    const uint32_t left = run.comm(0).state->turn.left;
    EXPECT_EQ(left > 0, kind == WordKind::kSentinel && !is_pull(method));
    EXPECT_LE(left, layout.inbox);
    const uint32_t room = is_pull(method) ? 2 * layout.outbox : left > 0 ? left : layout.inbox;
    for (const auto& [where, times] : fabric.sent) {
      const auto [pack, sender] = where;
      const uint32_t owner = owner_of(pack);
      EXPECT_EQ(owner == sender, is_pull(method));
      const uint32_t region = is_pull(method) ? layout.outbox_region(kind, outbox_slot(kind, turn.epoch))
                                              : layout.inbox_region(kind, turn.slot, sender);
      EXPECT_EQ(times, 1u);
      ASSERT_GE(place(pack, owner), region);
      EXPECT_LT(place(pack, owner) - region, room);
      std::set<uint32_t> readers;
      for (uint32_t r = 0; r < ranks; ++r)
        if (fabric.received.contains({pack, r})) readers.insert(r);
      EXPECT_FALSE(readers.empty()) << "a word that nobody waits for";
      EXPECT_FALSE(readers.contains(sender));
      if (!is_pull(method)) {
        EXPECT_EQ(readers, std::set<uint32_t>{owner});
      } else {
        const auto [known, is_new] = readers_.try_emplace({owner, place(pack, owner)}, readers);
        EXPECT_EQ(known->second, readers) << "a place that changes its readers";
      }
    }
    for (const auto& [where, times] : fabric.received) {
      const Pack* pack = where.first;
      EXPECT_TRUE(std::any_of(fabric.sent.begin(), fabric.sent.end(), [&](const auto& use) {
        return use.first.first == pack;
      })) << "a word that nobody sends";
    }
  }

  RanksOptions options() const {
    RanksOptions options;
    const auto ranks = static_cast<uint32_t>(std::strlen(GetParam().partition));
    options.layout = {ranks, 62, 37};  // no multiple of anything
    options.islands = islands_of(GetParam().partition);
    options.budget = std::chrono::milliseconds(2000);
    return options;
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::set<uint32_t>> readers_;  ///< of places of outboxes, all sizes
};

TEST_P(Places, AreRightForEverySize) {
  for (Method method : kAllMethods) {
    const Element element = GetParam().element;
    const uint32_t most = largest_operation(method, options().layout, word_kind(element), options().islands,
                                            wide_packs(element));
    ASSERT_EQ(most == 0, method != Method::kIslands && options().layout.ranks > kMaxHopRanks);
    for (uint32_t packs = 1; packs <= most;
         packs = packs < scaled(10, 2) || packs == most ? packs + 1 : std::min(scaled(3, 20) * packs, most))
      expect_right_places(method, packs, most);
  }
}

INSTANTIATE_TEST_SUITE_P(Partitions, Places,
                         testing::Values(Case{"AB", Element::kFloat32}, Case{"AB", Element::kInt64},
                                         Case{"AAB", Element::kFloat16}, Case{"ABBA", Element::kFloat8e5m2},
                                         Case{"AABBB", Element::kUint8}, Case{"ABCABC", Element::kBfloat16},
                                         Case{"AAAABBBB", Element::kFloat8e4m3},
                                         Case{"AAAABBBB", Element::kInt32},
                                         Case{"AAAAAABBBBB", Element::kFloat16},
                                         Case{"AAAABBBBCCCCDDDD", Element::kUint32}));

}  // namespace
}  // namespace onehop::test
