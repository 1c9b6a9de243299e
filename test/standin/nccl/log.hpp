// NCCL's log lines (NCCL_DEBUG=WARN or INFO, on standard output) and the text of the last error.
#pragma once

#include <string>

namespace onehop::standin {

[[gnu::format(printf, 1, 2)]] void info(const char* format, ...);
/// Also what ncclGetLastError returns.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
const char* last_error();

}  // namespace onehop::standin
