// A table of text, and numbers as they stand in one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace onehop::bench {

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  /// Shorter rows are filled up with empty cells.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Columns as wide as their longest cell, to the right but for the last. Columns that are empty below the
  /// head are left out.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "8 B", "42 KiB", "1.5 MiB"; a number of bytes where that is no short number of a larger unit.
std::string human(size_t bytes);

}  // namespace onehop::bench
