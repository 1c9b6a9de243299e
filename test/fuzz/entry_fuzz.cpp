// Any bytes as a function: its entry is refused, or its first instructions do at another address what they
// did before. Nothing beyond the function is read. The size of the input decides how the function is aligned.
#include "plugin/interpose/code_writer.hpp"
#include "plugin/interpose/entry.hpp"
#include "plugin/interpose/relocate.hpp"
#include "test/fuzz/guarded_memory.hpp"
#include "test/fuzz/x86.hpp"

namespace onehop::fuzz {
namespace {

using namespace interpose;
using Kind = Instruction::Kind;

constexpr size_t kRoomOfTrampoline = 96;  ///< of a slot in patch.cpp, without the stub

std::string hex(const unsigned char* bytes, size_t size) {
  std::string text;
  char byte[4];
  for (size_t i = 0; i < size; ++i) {
    std::snprintf(byte, sizeof(byte), "%02x ", bytes[i]);
    text += byte;
  }
  return text;
}

bool may_be_moved(Kind kind) {
  return kind == Kind::kPlain || kind == Kind::kRipRelative || kind == Kind::kCall || kind == Kind::kJump ||
         kind == Kind::kBranch;
}

/// The address that the bytes themselves refer to.
uintptr_t target_of(const unsigned char* end, size_t bytes) {
  int32_t displacement = 0;
  if (bytes == 1)
    displacement = static_cast<signed char>(end[-1]);
  else
    std::memcpy(&displacement, end - 4, 4);
  return reinterpret_cast<uintptr_t>(end) + static_cast<uintptr_t>(int64_t{displacement});
}

void check_moved(const Instruction& instruction) {
  const std::string text = hex(instruction.address, instruction.size);
  require(may_be_moved(instruction.kind), "only what can be moved is moved", text);
  const auto shape = shape_of(instruction.address, instruction.size);
  require(shape.has_value(), "an instruction is whole", text);
  require(shape->ip_relative == (instruction.kind == Kind::kRipRelative),
          "what is counted from its address is known", text);
  const bool branch =
      instruction.kind == Kind::kCall || instruction.kind == Kind::kJump || instruction.kind == Kind::kBranch;
  require((shape->branch_bytes != 0) == branch, "a branch is known", text);
  if (branch)
    require(instruction.target == target_of(instruction.end(), shape->branch_bytes), "so is where it goes",
            text);
}

/// The copy, instruction by instruction, means what the original meant.
void check_copy(const Decoder& decoder, const Entry& entry, GuardedMemory& copy) {
  const auto resume = reinterpret_cast<uintptr_t>(entry.resume());
  const auto at = reinterpret_cast<uintptr_t>(copy.begin());
  const auto moved = relocate(entry.moved, at, resume);
  if (!moved) return;  // more than 2 GiB away
  require(moved->size() <= kRoomOfTrampoline, "the copy has room");
  std::memcpy(copy.begin(), moved->data(), moved->size());
  const unsigned char *now = copy.begin(), *const end = now + moved->size();
  Instruction instruction;
  for (const Instruction& before : entry.moved) {
    const std::string text =
        hex(before.address, before.size) + "became " + hex(now, static_cast<size_t>(end - now));
    require(decoder.decode(now, end, instruction), "the copy can be decoded", text);
    require(instruction.kind == before.kind && instruction.target == before.target, "the copy means the same",
            text);
    const auto shape = shape_of(now, instruction.size);
    if (shape && shape->branch_bytes != 0)
      require(target_of(instruction.end(), shape->branch_bytes) == before.target,
              "and goes to the same place", text);
    else
      require(instruction.size == before.size, "the copy is as long", text);
    if (before.kind == Kind::kPlain)
      require(std::memcmp(now, before.address, before.size) == 0, "the copy has the same bytes", text);
    now = instruction.end();
  }
  require(decoder.decode(now, end, instruction) && instruction.kind == Kind::kJump &&
              instruction.target == resume && instruction.end() == end,
          "the copy leads back");
}

/// Nothing in the function goes into the bytes that the jump replaces.
void check_body(const Decoder& decoder, const Entry& entry, const unsigned char* end) {
  const auto function = reinterpret_cast<uintptr_t>(entry.function);
  const uintptr_t jump_end = reinterpret_cast<uintptr_t>(entry.jump()) + kJumpSize;
  Instruction instruction;
  for (const unsigned char* at = entry.function; at < end; at = instruction.end()) {
    require(decoder.decode(at, end, instruction), "the whole function can be decoded");
    const auto shape = shape_of(at, instruction.size);
    if (!shape || shape->branch_bytes == 0 || shape->operand_prefix) continue;
    const uintptr_t target = target_of(instruction.end(), shape->branch_bytes);
    if (target == function && shape->is_call) continue;
    require(target < function || target >= jump_end, "no branch goes into the bytes to overwrite",
            hex(at, instruction.size));
  }
}

void check_entry(const Decoder& decoder, GuardedMemory& code, GuardedMemory& copy, const uint8_t* data,
                 size_t size) {
  unsigned char* const function = code.place(data, size);
  const Result<Entry> entry = examine_entry(decoder, function, size);
  require(std::memcmp(function, data, size) == 0, "looking changes nothing");
  if (!entry) return require_line(entry.reason());
  const unsigned char* const end = function + size;
  require(!entry->moved.empty() && entry->jump() >= function && entry->jump() + kJumpSize <= end,
          "the jump is within the function");
  require(can_write_jump(entry->jump()), "the jump can be written");
  require(entry->pushes <= 7, "the pushes can be taken back by one instruction");
  const unsigned char* at = function;
  for (const Instruction& instruction : entry->moved) {
    require(instruction.address == at && instruction.size > 0,
            "the first instructions are moved, without a gap");
    check_moved(instruction);
    at = instruction.end();
  }
  require(at >= entry->jump() + kJumpSize && at <= end, "all that the jump overwrites is moved");
  check_copy(decoder, *entry, copy);
  check_body(decoder, *entry, end);
}

/// The other kind: a function that does nothing, with the padding behind it.
void check_empty(const Decoder& decoder, GuardedMemory& code, const uint8_t* data, size_t size) {
  constexpr size_t kSlot = 16;
  unsigned char* const function = code.place(data, size);
  const Result<unsigned char*> jump = examine_empty_function(decoder, function);
  if (!jump) return require_line(jump.reason());
  const size_t left = kSlot - reinterpret_cast<uintptr_t>(function) % kSlot;
  require(*jump == function || *jump == function + 4, "the jump is at the beginning");
  require(*jump + kJumpSize <= function + left, "the jump is within the slot");
  Instruction instruction;
  require(decoder.decode(*jump, function + left, instruction) && instruction.kind == Kind::kReturn,
          "the function returns at once");
  for (const unsigned char* at = instruction.end(); at < *jump + kJumpSize; at = instruction.end())
    require(decoder.decode(at, function + left, instruction) && (instruction.is_nop || *at == 0xCC),
            "nothing but padding is overwritten");
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop::fuzz;
  static const auto decoder = onehop::interpose::Decoder::create();
  static GuardedMemory code(1), copy(1);
  require(static_cast<bool>(decoder), "the disassembler starts");
  if (size == 0 || size > kPage) return 0;
  check_entry(*decoder, code, copy, data, size);
  check_empty(*decoder, code, data, size);
  return 0;
}
