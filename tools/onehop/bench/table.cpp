#include "tools/onehop/bench/table.hpp"

#include <algorithm>
#include <cstdio>

namespace onehop::bench {
namespace {

/// Letters, not bytes: µ has two.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

template <class... Values>
std::string print(const char* form, Values... values) {
  char text[64];
  std::snprintf(text, sizeof(text), form, values...);
  return text;
}

}  // namespace

std::string Table::text() const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> widths(columns, 0);
  for (size_t column = 0; column < columns; ++column) {
    size_t below = 0;
    for (size_t row = 1; row < rows_.size(); ++row)
      if (column < rows_[row].size()) below = std::max(below, width_of(rows_[row][column]));
    if (below > 0) widths[column] = std::max(below, width_of(rows_.front()[column]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      if (widths[column] == 0) continue;
      const std::string cell = column < row.size() ? row[column] : "";
      line += "  ";
      if (column + 1 < columns) line.append(widths[column] - width_of(cell), ' ');
      line += cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string human(size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0, scale = 1;
  // Halves are short enough, but only of a number that is not much longer in the smaller unit.
  while (unit + 1 < std::size(kUnits) && bytes >= scale << 10 && bytes % (scale << 9) == 0) {
    scale <<= 10;
    ++unit;
  }
  return print("%g %s", static_cast<double>(bytes) / static_cast<double>(scale), kUnits[unit]);
}

}  // namespace onehop::bench
