// What is mapped in this process, and with which protection.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/result.hpp"

namespace onehop::interpose {

struct Region {
  uintptr_t begin, end;
  int protection;  ///< PROT_ bits
};

/// The mapped regions in order of address.
Result<std::vector<Region>> mapped_regions();

}  // namespace onehop::interpose
