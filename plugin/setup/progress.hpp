// The record of the second and third exchange of set-up: how far a rank got, and where its staging memory is.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "plugin/one_line.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop {

/// Puts as much of `text` into a fixed field as fits, zero-terminated.
template <size_t N>
void put_text(std::array<char, N>& field, const std::string& text) {
  field = {};
  std::memcpy(field.data(), text.data(), std::min(text.size(), N - 1));
}

/// What a peer put there, which may be anything.
template <size_t N>
std::string get_text(const std::array<char, N>& field) {
  return one_line({field.data(), strnlen(field.data(), N)});
}

struct Progress {
  uint32_t ok = 0;
  std::array<char, 132> why{};  ///< if not ok
  StagingAddress address;

  static Progress of(const Status& status) {
    Progress progress;
    progress.ok = status ? 1 : 0;
    if (!status) put_text(progress.why, status.reason());
    return progress;
  }
};

/// The first rank that did not get through a step, as a reason; `what` says what it lacks.
inline std::optional<std::string> first_failure(std::span<const Progress> table, const char* what) {
  for (size_t r = 0; r < table.size(); ++r)
    if (table[r].ok != 1) return "rank " + std::to_string(r) + " " + what + ": " + get_text(table[r].why);
  return std::nullopt;
}

}  // namespace onehop
