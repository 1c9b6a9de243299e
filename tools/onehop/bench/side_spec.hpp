// The sides of a comparison: stock NCCL, onehop, and stock NCCL with other settings.
#pragma once

#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/bench/options.hpp"
#include "tools/onehop/nccl_settings.hpp"

namespace onehop::bench {

struct SideSpec {
  std::string name;  ///< in messages and tables
  bool onehop = false;
  std::string method;           ///< of its rows: the settings of a rival
  tool::NcclSettings settings;  ///< environment variables on top of the user's own
};

/// Stock NCCL first, onehop second, then what the options ask for.
Result<std::vector<SideSpec>> sides_of(const Options& options);

}  // namespace onehop::bench
