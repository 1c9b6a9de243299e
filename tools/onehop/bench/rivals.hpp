// The sides of a comparison: stock NCCL, onehop, and stock NCCL with other settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/bench/options.hpp"

namespace onehop::bench {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct SideSpec {
  std::string name;  ///< in messages and tables
  bool onehop = false;
  std::string method;  ///< of its rows: the settings of a rival
  Settings settings;   ///< environment variables on top of the user's own
};

/// "NCCL_PROTO=LL NCCL_MAX_NCHANNELS=4": words with an equals sign.
Result<Settings> parse_settings(const std::string& text);

/// NCCL's better settings, one side each, as far as the user's own environment does not forbid them.
std::vector<std::string> usual_rivals();

/// Stock NCCL first, onehop second, then what the options ask for.
Result<std::vector<SideSpec>> sides_of(const Options& options);

}  // namespace onehop::bench
