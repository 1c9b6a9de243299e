#include "tools/onehop/units.hpp"

#include <fmt/format.h>

#include <iterator>

namespace onehop::tool {

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  // What is not even is not worth more than one digit.
  double amount = static_cast<double>(bytes);
  bool even = true;
  for (; amount >= 10240 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024, even = false;
  return even ? fmt::format("{} {}", bytes, kUnits[unit]) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string microseconds(double us) {
  return fmt::format("{:.{}f}", us, us < 9.995 ? 2 : us < 99.95 ? 1 : 0);
}

}  // namespace onehop::tool
