// Why a call was passed to NCCL.
#pragma once

#include <array>
#include <cstddef>

namespace onehop {

enum class Pass {
  kType,          ///< a type that no method serves
  kOperator,      ///< an operator that no method serves
  kSize,          ///< more bytes than the plan takes
  kSlower,        ///< NCCL was measured to be as fast at this size
  kEmpty,         ///< no elements: NCCL does nothing
  kDeclined,      ///< the communicator is off
  kSwitchedOff,   ///< onehopEnable(comm, 0)
  kNotInspected,  ///< an invalid communicator or argument, a larger call before set-up, or a forked child
};
inline constexpr size_t kPassReasons = 8;

inline constexpr std::array<const char*, kPassReasons> kPassTexts = {
    "type", "operator", "size", "slower", "empty", "declined", "switched off", "not inspected"};

}  // namespace onehop
