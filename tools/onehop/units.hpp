// Numbers as they are shown.
#pragma once

#include <cstdint>
#include <string>

namespace onehop::tool {

/// "32 GiB", "140.4 GiB", "1000 bytes"; exact powers of 1024 only as far as they go.
std::string size_text(uint64_t bytes);

/// Microseconds, three digits that count: "2.41", "12.4", "145".
std::string microseconds(double us);

}  // namespace onehop::tool
