// How much longer everything may take where the programs were built with AddressSanitizer.
#pragma once

namespace onehop::node {

#ifdef __SANITIZE_ADDRESS__
inline constexpr int kPatience = 6;
#else
inline constexpr int kPatience = 1;
#endif

}  // namespace onehop::node
