// NCCL's own switches in the environment: no value may lead onehop where NCCL itself, reading the same value,
// would not go. NCCL's configuration files are read by NCCL alone, which puts their values into the
// environment.
#include <cerrno>
#include <cstdlib>

#include "plugin/nccl_switches.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

/// A variable with this value for as long as it lives. (setenv() keeps every value that there ever was.)
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name), text_(name_ + "=" + value) {
    putenv(text_.data());
  }
  Variable(const Variable&) = delete;
  ~Variable() { unsetenv(name_.c_str()); }

 private:
  const std::string name_;
  std::string text_;  ///< part of the environment
};

/// Whether every release of NCCL reads `value` as the number 0: prefixes and other bases count, an empty text
/// and one out of range do not.
bool is_zero_to_nccl(const std::string& value) {
  errno = 0;
  char* end = nullptr;
  const long long number = std::strtoll(value.c_str(), &end, 0);
  return end != value.c_str() && errno == 0 && number == 0;
}

void check_environment(const std::string& value) {
  {
    const Variable variable("NCCL_GRAPH_MIXING_SUPPORT", value);
    require(nccl_mixes_graphs() != is_zero_to_nccl(value), "graphs are kept in order unless NCCL need not",
            value);
  }
  {
    const Variable variable("NCCL_P2P_DISABLE", value);
    if (static_cast<int>(std::strtol(value.c_str(), nullptr, 0)) == 1)
      require(nccl_avoids_peers().has_value(), "no peer access where NCCL has none (NCCL_P2P_DISABLE)",
              value);
  }
  {
    const Variable variable("NCCL_P2P_LEVEL", value);
    const bool number = !value.empty() && value[0] >= '0' && value[0] <= '9';
    const bool narrow =
        number ? static_cast<int>(std::strtol(value.c_str(), nullptr, 0)) < 4
               : value == "LOC" || value == "NVL" || value == "PIX" || value == "PXB" || value == "PHB";
    if (narrow)
      require(nccl_avoids_peers().has_value(), "no peer access where NCCL has none (NCCL_P2P_LEVEL)", value);
  }
  const Variable variable("NCCL_ALGO", value);
  const auto veto = nccl_switch_veto();
  require(veto.has_value() == pins_all_reduce(value), "what pins AllReduce is a veto", value);
  if (veto) require_line(*veto);
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  std::string value(text_of(data, size));
  value.resize(std::min(value.size(), value.find('\0')));
  check_environment(value);
  // A list pins AllReduce exactly if one of its parts does.
  bool any = false;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(';', at), value.size());
    any = any || pins_all_reduce(value.substr(at, end - at));
    at = end + 1;
  }
  require(pins_all_reduce(value) == any, "each part of a list counts by itself", value);
  if (value.find(';') == std::string::npos)
    require(!pins_all_reduce("^" + value) || value.find(':') != std::string::npos,
            "an exclusion pins nothing", value);
  return 0;
}
