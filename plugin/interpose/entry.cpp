// The checks on a function before its entry is overwritten. Everything that is not understood is refused: a
// job without the redirection is slower, one with a wrong redirection crashes.
#include "plugin/interpose/entry.hpp"

#include <cstdio>
#include <cstring>

#include "plugin/interpose/code_writer.hpp"

namespace onehop::interpose {
namespace {

using Kind = Instruction::Kind;

constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

std::string hex(uintptr_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%zx", static_cast<size_t>(value));
  return text;
}

bool is_push(const Instruction& instruction) {
  const unsigned char* bytes = instruction.address;
  return (instruction.size == 1 && (bytes[0] & 0xf8) == 0x50) ||
         (instruction.size == 2 && bytes[0] == 0x41 && (bytes[1] & 0xf8) == 0x50);
}

/// Where the jump goes: at `body` or, if one aligned store cannot write it there, behind the first of the
/// leading pushes where one can. Threads then need not be kept out while it is written, and one that is
/// stopped between those pushes is safe. The way to the replacement takes the pushes back.
const unsigned char* place_of_jump(const Decoder& decoder, const unsigned char* body,
                                   const unsigned char* end, size_t& pushes) {
  Instruction instruction;
  pushes = 0;
  for (const unsigned char* at = body; !fits_one_store(at); at = instruction.end(), ++pushes) {
    if (decoder.decode(at, end, instruction) && is_push(instruction)) continue;
    pushes = 0;
    return body;
  }
  const unsigned char* at = body;
  for (size_t i = 0; i < pushes; ++i) at += *at == 0x41 ? 2 : 1;
  return at;
}

/// `mov reg, imm64; jmp reg` and `push imm32; ... ret`: the long jumps that other tools write.
bool is_long_jump(const Decoder& decoder, const Instruction& first, const unsigned char* end) {
  const unsigned char* bytes = first.address;
  if (first.size == 5 && bytes[0] == 0x68) return true;
  Instruction second;
  return first.size == 10 && (bytes[0] & 0xfe) == 0x48 && decoder.decode(first.end(), end, second) &&
         second.kind == Kind::kIndirectJump;
}

/// Why an instruction cannot be among the first ones, or null.
const char* refusal(const Instruction& instruction, bool first, bool last) {
  switch (instruction.kind) {
    case Kind::kTrap:
      return first ? "it begins with a trap: a debugger's breakpoint?"
                   : "a trap is among its first instructions";
    case Kind::kIndirectJump:
    case Kind::kJump:
      if (first) return "it begins with a jump: another tool may have redirected it already";
      if (instruction.kind == Kind::kIndirectJump || !last) return "it is left within the bytes to overwrite";
      return nullptr;
    case Kind::kReturn:
      return "it returns within the bytes to overwrite";
    case Kind::kUnmovable:
      return "an instruction among the first cannot be moved";
    case Kind::kCall:
      // The call reads its own address: the return address is popped, not returned to.
      if (instruction.target == reinterpret_cast<uintptr_t>(instruction.end()))
        return "it reads its own address among its first instructions";
      return nullptr;
    case Kind::kPlain:
    case Kind::kRipRelative:
    case Kind::kBranch:
      return nullptr;
  }
  return "an instruction among the first is of an unknown kind";
}

bool branches(const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::kCall:
    case Kind::kJump:
    case Kind::kBranch:
    case Kind::kUnmovable:  // target 0 where it does not branch
      return true;
    default:
      return false;
  }
}

/// Reads the whole function for a way into the bytes that the jump replaces. Code outside the symbol's extent
/// (a cold part that the compiler split off) and computed jumps are not seen; no compiler known to us makes
/// those go to a place within the first instructions, which run once, before any loop.
Status check_body(const Decoder& decoder, const Entry& entry, const unsigned char* end) {
  const auto function = reinterpret_cast<uintptr_t>(entry.function);
  const auto jump_end = reinterpret_cast<uintptr_t>(entry.jump()) + kJumpSize;
  Instruction instruction;
  for (const unsigned char* at = entry.function; at < end; at = instruction.end()) {
    const auto offset = static_cast<size_t>(at - entry.function);
    if (!decoder.decode(at, end, instruction)) return Error{"it cannot be decoded at +" + hex(offset)};
    if (!branches(instruction)) continue;
    if (instruction.target < function || instruction.target >= jump_end) continue;
    // Recursion calls the function as anyone does. A jump to the first byte, though, is a loop, whose rounds
    // must not become calls of the replacement.
    if (instruction.kind == Kind::kCall && instruction.target == function) continue;
    return Error{"a branch at +" + hex(offset) + " goes to +" + hex(instruction.target - function) +
                 ", within the bytes to overwrite"};
  }
  return {};
}

}  // namespace

Result<Entry> examine_entry(const Decoder& decoder, unsigned char* function, size_t size) {
  Entry entry;
  entry.function = function;
  const unsigned char* const end = function + size;
  const unsigned char* body = function;

  Instruction instruction;
  // endbr64 stays where it is, so that indirect calls go on to find it; the trampoline gets a copy for the
  // same reason.
  if (size >= sizeof kEndbr64 && std::memcmp(function, kEndbr64, sizeof kEndbr64) == 0) {
    instruction.address = function;
    instruction.size = sizeof kEndbr64;
    entry.moved.push_back(instruction);
    body += sizeof kEndbr64;
  }
  const unsigned char* const jump = place_of_jump(decoder, body, end, entry.pushes);

  for (const unsigned char* at = body; at < jump + kJumpSize; at = instruction.end()) {
    if (at >= end) return Error{"it is shorter than the jump that would redirect it"};
    if (!decoder.decode(at, end, instruction)) return Error{"its first instructions cannot be decoded"};
    const bool first = at == body;
    const bool last = instruction.end() >= jump + kJumpSize;
    if (const char* reason = refusal(instruction, first, last)) return Error{reason};
    if (first && is_long_jump(decoder, instruction, end))
      return Error{"it begins with a jump: another tool may have redirected it already"};
    entry.moved.push_back(instruction);
  }
  entry.jump_offset = static_cast<size_t>(jump - function);
  if (!can_write_jump(jump)) return Error{"its first two bytes lie in two cache lines"};
  if (Status checked = check_body(decoder, entry, end); !checked) return checked.error();
  return entry;
}

Result<unsigned char*> examine_empty_function(const Decoder& decoder, unsigned char* function) {
  // A 16-byte slot is what compilers align functions to: padding up to its end is nobody else's.
  constexpr uintptr_t kSlot = 16;
  unsigned char* const slot_end = function + (kSlot - reinterpret_cast<uintptr_t>(function) % kSlot);
  unsigned char* jump = function;
  if (static_cast<size_t>(slot_end - function) > sizeof kEndbr64 &&
      std::memcmp(function, kEndbr64, sizeof kEndbr64) == 0)
    jump += sizeof kEndbr64;

  Instruction instruction;
  if (!decoder.decode(jump, slot_end, instruction) || instruction.kind != Kind::kReturn)
    return Error{"it is not empty"};
  if (jump + kJumpSize > slot_end) return Error{"there is no room for a jump"};
  for (const unsigned char* at = instruction.end(); at < jump + kJumpSize; at = instruction.end()) {
    const bool padding = decoder.decode(at, slot_end, instruction) && (instruction.is_nop || *at == 0xcc);
    if (!padding) return Error{"something other than padding follows it"};
  }
  if (!can_write_jump(jump)) return Error{"its first two bytes lie in two cache lines"};
  return jump;
}

}  // namespace onehop::interpose
