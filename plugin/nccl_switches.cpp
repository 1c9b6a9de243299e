#include "plugin/nccl_switches.hpp"

#include <strings.h>

#include <cstdlib>

namespace onehop {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
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
      return std::string(name) + "=" + value + " pins what NCCL uses for AllReduce";
  }
  return std::nullopt;
}

std::optional<std::string> nccl_avoids_peers() {
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  if (disabled != nullptr && std::atoi(disabled) != 0) return std::string("NCCL_P2P_DISABLE=") + disabled;
  // Any level but the widest says that some pairs are to do without peer access; which, onehop does not know.
  // NCCL reads what is no name as a number, 4 and 5 being the widest.
  const char* level = std::getenv("NCCL_P2P_LEVEL");
  if (level != nullptr && *level != '\0' && !equal_ignoring_case(level, "SYS") &&
      std::strtol(level, nullptr, 0) < 4)
    return std::string("NCCL_P2P_LEVEL=") + level;
  return std::nullopt;
}

bool nccl_mixes_graphs() {
  const char* value = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  return value == nullptr || std::atoi(value) != 0;
}

}  // namespace onehop
