// Whether and where the entry of a function can be redirected.
#pragma once

#include <vector>

#include "plugin/interpose/instruction.hpp"

namespace onehop::interpose {

/// Size of the jmp rel32 that redirects an entry.
inline constexpr size_t kJumpSize = 5;

/// What has to be known to redirect a function.
struct Entry {
  unsigned char* function = nullptr;
  size_t jump_offset = 0;  ///< where in the function the jump goes
  size_t pushes = 0;  ///< the jump comes after so many pushes, which the way to the replacement takes back
  std::vector<Instruction>
      moved;  ///< the function's first instructions, all that the jump overwrites among them

  unsigned char* jump() const { return function + jump_offset; }
  unsigned char* resume() const { return const_cast<unsigned char*>(moved.back().end()); }
};

/// Checks that nothing in the function, which has `size` bytes, can tell that its entry was overwritten.
Result<Entry> examine_entry(const Decoder&, unsigned char* function, size_t size);

/// The same for a function that does nothing but return, and may be shorter than the jump if only padding
/// follows: the jump's place, or why there is none.
Result<unsigned char*> examine_empty_function(const Decoder&, unsigned char* function);

}  // namespace onehop::interpose
