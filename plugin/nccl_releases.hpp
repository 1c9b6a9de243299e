// The releases of NCCL whose functions are known to be what onehop takes them for, as ncclGetVersion says
// them. A newer one is declined until somebody has looked at it.
#pragma once

namespace onehop {

inline constexpr int kOldestNccl = 21000, kNewestNccl = 23299;

}  // namespace onehop
