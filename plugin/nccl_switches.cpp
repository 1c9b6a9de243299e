#include "plugin/nccl_switches.hpp"

#include <strings.h>

#include <cerrno>
#include <cstdlib>

#include "plugin/one_line.hpp"

namespace onehop {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// A number as NCCL reads it: of base 10, 8 or 16, whatever follows it. Nothing for what some release takes
/// for no number.
std::optional<long long> number(const char* value) {
  if (value == nullptr) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(value, &end, 0);
  if (end == value || errno != 0) return std::nullopt;
  return number;
}

std::string named(const char* name, const char* value) {
  return std::string(name) + "=" + one_line(value);
}

}  // namespace

bool pins_all_reduce(std::string_view value) {
  // Lists for single functions ("allreduce:...") are divided by ';'; one without a name is for all functions.
  while (!value.empty()) {
    const size_t end = value.find(';');
    std::string_view list = value.substr(0, end);
    value = end == std::string_view::npos ? std::string_view() : value.substr(end + 1);
    if (const size_t colon = list.find(':'); colon != std::string_view::npos) {
      if (!equal_ignoring_case(list.substr(0, colon), "allreduce")) continue;
      list = list.substr(colon + 1);
    }
    if (!list.empty() && list.front() != '^') return true;
  }
  return false;
}

std::optional<std::string> nccl_switch_veto() {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && pins_all_reduce(value))
      return named(name, value) + " pins what NCCL uses for AllReduce";
  }
  return std::nullopt;
}

std::optional<std::string> nccl_avoids_peers() {
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  if (number(disabled).value_or(0) != 0) return named("NCCL_P2P_DISABLE", disabled);
  // Any level but the widest says that some pairs are to do without peer access; which, onehop does not know.
  // NCCL reads what is no name as a number that it keeps in an int, 4 and 5 being the widest.
  const char* level = std::getenv("NCCL_P2P_LEVEL");
  if (level != nullptr && *level != '\0' && !equal_ignoring_case(level, "SYS") &&
      static_cast<int>(std::strtol(level, nullptr, 0)) < 4)
    return named("NCCL_P2P_LEVEL", level);
  return std::nullopt;
}

bool nccl_mixes_graphs() {
  // Where releases of NCCL differ, graphs are kept in order.
  return number(std::getenv("NCCL_GRAPH_MIXING_SUPPORT")).value_or(1) != 0;
}

}  // namespace onehop
