// One x86-64 instruction, seen as what matters when it is moved or overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plugin/result.hpp"

namespace onehop::interpose {

struct Instruction {
  enum class Kind {
    kPlain,         ///< does the same at any address
    kRipRelative,   ///< has a memory operand at `target`
    kCall,          ///< call rel32 to `target`
    kJump,          ///< jmp rel8 or rel32 to `target`
    kBranch,        ///< jcc rel8 or rel32 to `target`
    kReturn,        ///< leaves the function
    kIndirectJump,  ///< jmp through a register or memory
    kTrap,          ///< int3, int, ud2, hlt: a debugger's, or not meant to be passed
    kUnmovable,     ///< depends on its address in a way that has no counterpart elsewhere; `target` is 0 or
                    ///< where it branches
  };

  Kind kind = Kind::kPlain;
  const unsigned char* address = nullptr;
  size_t size = 0;
  uintptr_t target = 0;
  size_t displacement = 0;  ///< kRipRelative: offset of the disp32 in the instruction
  bool is_nop = false;

  const unsigned char* end() const { return address + size; }
  uintptr_t begin_address() const { return reinterpret_cast<uintptr_t>(address); }
};

/// A disassembler.
class Decoder {
 public:
  static Result<Decoder> create();
  Decoder(Decoder&&) noexcept;
  ~Decoder();

  /// The instruction at `at` that ends at or before `end`; false if there is none that makes sense.
  bool decode(const unsigned char* at, const unsigned char* end, Instruction&) const;

 private:
  struct Engine;
  explicit Decoder(std::unique_ptr<Engine>);
  std::unique_ptr<Engine> engine_;
};

}  // namespace onehop::interpose
