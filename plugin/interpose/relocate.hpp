// Moving instructions to another address.
#pragma once

#include <vector>

#include "plugin/interpose/instruction.hpp"

namespace onehop::interpose {

/// The bytes that do at address `at` what `instructions` do where they are, and then go on at `resume`.
/// A call among them returns into the new copy; an exception thrown by what it calls cannot be passed on,
/// since no unwind information describes the copy.
Result<std::vector<unsigned char>> relocate(const std::vector<Instruction>& instructions, uintptr_t at,
                                            uintptr_t resume);

/// The displacement of a branch or memory operand whose instruction ends at `from`; fails beyond 2 GiB.
Result<int32_t> displacement(uintptr_t from, uintptr_t target);

}  // namespace onehop::interpose
