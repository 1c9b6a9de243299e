// The code between a redirected entry and its replacement.
#pragma once

#include <vector>

#include "plugin/interpose/code_writer.hpp"

namespace onehop::interpose {

inline constexpr size_t kStubSize = 32;

/// Jumps to `replacement`, wherever it is, with registers and stack as a caller of the function left them:
/// `pushes` pushes that the function made before the jump are taken back.
std::vector<unsigned char> make_stub(const void* replacement, size_t pushes);

/// A jmp rel32 at `at` to `stub`; fails beyond 2 GiB.
Result<JumpBytes> make_jump(const unsigned char* at, const unsigned char* stub);

}  // namespace onehop::interpose
