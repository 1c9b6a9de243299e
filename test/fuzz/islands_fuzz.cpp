// The text of ONEHOP_ISLANDS: understood exactly as the documentation says, and then a partition of the
// ranks.
#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/islands.hpp"
#include "plugin/settings.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

const SettingRow& islands_row() {
  for (const SettingRow& row : setting_rows())
    if (row.name == std::string_view("ONEHOP_ISLANDS")) return row;
  std::abort();
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// A rank's number, or nothing; leading zeros are allowed.
std::optional<uint32_t> rank_of(const std::string& text) {
  uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = std::min<uint32_t>(value * 10 + static_cast<uint32_t>(c - '0'), kMaxRanks);
  }
  if (text.empty() || value >= kMaxRanks) return std::nullopt;
  return value;
}

/// The island of each rank, read the slow way: a list of members for each island, then every rule by itself.
std::optional<std::vector<uint8_t>> read_slowly(const std::string& text) {
  std::vector<uint8_t> island_of;
  const std::vector<std::string> islands = split(text, '/');
  std::vector<uint32_t> all;
  for (const std::string& island : islands) {
    size_t members = 0;
    for (const std::string& item : split(island, ',')) {
      const std::vector<std::string> ends = split(item, '-');
      const auto first = rank_of(ends.front()), last = rank_of(ends.back());
      if (ends.size() > 2 || !first || !last || *first > *last) return std::nullopt;
      for (uint32_t rank = *first; rank <= *last; ++rank, ++members) all.push_back(rank);
    }
    if (members > kMaxHopRanks) return std::nullopt;
  }
  std::vector<uint32_t> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t rank = 0; rank < sorted.size(); ++rank)
    if (sorted[rank] != rank) return std::nullopt;
  if (islands.size() < 2) return std::nullopt;
  island_of.resize(all.size());
  uint8_t number = 0;
  for (const std::string& island : islands) {
    for (const std::string& item : split(island, ','))
      for (uint32_t r = *rank_of(split(item, '-').front()); r <= *rank_of(split(item, '-').back()); ++r)
        island_of[r] = number;
    ++number;
  }
  return island_of;
}

void check_partition(const Islands& islands, const std::vector<uint8_t>& island_of) {
  const auto ranks = static_cast<uint32_t>(island_of.size());
  std::vector<int> seen(ranks, 0);
  for (uint32_t i = 0; i < islands.count; ++i) {
    require(islands.size(i) >= islands.smallest && islands.size(i) >= 1 && islands.size(i) <= kMaxHopRanks,
            "an island has 1 to 8 members");
    for (uint32_t k = 0; k < islands.size(i); ++k) {
      const uint32_t rank = islands.member(i, k);
      require(rank < ranks && island_of[rank] == i, "a member is in its island");
      require(islands.place(rank) == k, "a member is at its place");
      ++seen[rank];
    }
  }
  require(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }),
          "every rank is in exactly one island");
  require(islands.run[0] == 0 && islands.run[islands.runs] == ranks, "the runs cover all ranks");
  for (uint32_t r = 0; r < islands.runs; ++r)
    for (uint32_t rank = islands.run[r]; rank < islands.run[r + 1]; ++rank)
      require(island_of[rank] == island_of[islands.run[r]], "a run is of one island");
  for (uint32_t a = 0; a < ranks; ++a)
    for (uint32_t b = 0; b < a; ++b)
      require(are_partners(islands, a, b) == are_partners(islands, b, a), "partners are so both ways");
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  static const SettingRow& row = islands_row();
  const std::string text(text_of(data, size));
  Settings settings;
  const bool understood = row.parse(text, settings);
  if (text == "auto") {
    require(understood && settings.islands.empty(), "auto leaves the islands open");
    return 0;
  }
  const auto expected = read_slowly(text);
  require(understood == expected.has_value(), "exactly the documented texts are understood", text);
  if (!understood) return 0;
  require(settings.islands == *expected, "every rank is in the island that the text says", text);
  check_partition(make_islands(settings.islands.data(), static_cast<uint32_t>(settings.islands.size())),
                  settings.islands);
  Settings again;
  require(row.parse(row.show(settings), again) && again.islands == settings.islands, "shown and read, equal");
  return 0;
}
