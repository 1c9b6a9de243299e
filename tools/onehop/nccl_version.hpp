// A release of NCCL as ncclGetVersion says it: 2.28.9 is 22809 (2804 for 2.8.4, before 2.9).
#pragma once

#include <compare>
#include <string>

#include "plugin/nccl_releases.hpp"

namespace onehop::tool {

struct NcclVersion {
  int code = 0;
  constexpr auto operator<=>(const NcclVersion&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// nccl(2, 21) is 2.21.0, the least of all 2.21.
constexpr NcclVersion nccl(int major, int minor, int patch = 0) {
  return {major * 10000 + minor * 100 + patch};
}

/// Whether onehop serves jobs with this release.
constexpr bool is_known(NcclVersion version) {
  return version.code >= kOldestNccl && version.code <= kNewestNccl;
}

inline std::string to_string(NcclVersion version) {
  const int major = version.code >= 10000 ? version.code / 10000 : version.code / 1000;
  const int rest = version.code >= 10000 ? version.code % 10000 : version.code % 1000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

}  // namespace onehop::tool
