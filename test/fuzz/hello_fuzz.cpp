// The hellos of all ranks, as they come from the peers: any bytes. The input says how many ranks there are
// and how their bytes differ from those of ranks that agree.
#include <algorithm>
#include <vector>

#include "kernels/protocol/layout.hpp"
#include "plugin/setup/hello.hpp"
#include "plugin/setup/progress.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

using Table = std::vector<Hello>;

Table agreeing(uint32_t ranks) {
  Table table(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    table[r].rank = r;
    table[r].ranks = ranks;
    table[r].host = 1;
    table[r].process = r / 2;  // pairs share a process
    put_text(table[r].version, "1.2.3");
  }
  return table;
}

/// What all of its ranks must have in common, said again in the plainest way.
bool agree(const Table& table) {
  for (uint32_t r = 0; r < table.size(); ++r) {
    const Hello &a = table[r], &first = table[0];
    if (a.magic != Hello::kMagic || a.wire != first.wire || a.version != first.version) return false;
    if (a.rank != r || a.ranks != table.size() || a.veto != Veto::kNone) return false;
    if (a.host == 0 || a.host != first.host || a.settings != first.settings) return false;
    for (const Hello& b : table) {
      if (&b == &a) continue;
      if (b.process == a.process && a.launches_block != 0) return false;
      if (b.user_namespace == a.user_namespace && b.user != a.user) return false;
    }
  }
  return true;
}

/// The same ranks, numbered from the other end.
Table renumbered(Table table) {
  std::reverse(table.begin(), table.end());
  const auto last = static_cast<uint32_t>(table.size() - 1);
  for (Hello& hello : table) hello.rank = last - hello.rank;
  return table;
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  if (size == 0) return 0;
  Table table = agreeing(2 + *data % (kMaxRanks - 1));
  ++data, --size;
  for (Hello& hello : table) disturb(hello, data, size);

  const std::optional<std::string> verdict = verdict_of(table);
  require(verdict == verdict_of(Table(table)), "every rank comes to the same verdict");
  require(verdict.has_value() != agree(table), "declined exactly if the ranks do not agree",
          verdict.value_or("not declined"));
  require(verdict.has_value() == verdict_of(renumbered(table)).has_value(), "no rank is special");
  if (!verdict) return 0;
  require_line(*verdict);
  require(verdict->find("rank ") != std::string::npos, "a verdict names a rank", *verdict);
  return 0;
}
