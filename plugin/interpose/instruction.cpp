// Decoding with Capstone. What it says about addresses is compared with the bytes: a disagreement makes the
// instruction unmovable, never silently wrong.
#include "plugin/interpose/instruction.hpp"

#include <capstone/capstone.h>

#include <cstring>

namespace onehop::interpose {
namespace {

using Kind = Instruction::Kind;

bool is_any_of(unsigned id, std::initializer_list<unsigned> ids) {
  for (const unsigned candidate : ids)
    if (id == candidate) return true;
  return false;
}

// `insn` is a relative branch: the forms that relocate() can write again are recognised by their bytes, so
// that a prefix or an operand size that it does not know makes the instruction unmovable.
Kind relative_branch(const cs_insn& insn) {
  const uint8_t* bytes = insn.bytes;
  if (bytes[0] == 0xe8 && insn.size == 5) return Kind::kCall;
  if ((bytes[0] == 0xe9 && insn.size == 5) || (bytes[0] == 0xeb && insn.size == 2)) return Kind::kJump;
  if ((bytes[0] & 0xf0) == 0x70 && insn.size == 2) return Kind::kBranch;
  if (bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80 && insn.size == 6) return Kind::kBranch;
  return Kind::kUnmovable;  // loop, jrcxz, xbegin, prefixed branches
}

void classify_memory(const cs_insn& insn, const cs_x86_op& operand, Instruction& result) {
  if (operand.mem.base == X86_REG_EIP || operand.mem.base == X86_REG_IP) result.kind = Kind::kUnmovable;
  if (operand.mem.base != X86_REG_RIP) return;
  const cs_x86_encoding& encoding = insn.detail->x86.encoding;
  int32_t displacement = 0;
  const bool has_field = encoding.disp_size == 4 && encoding.disp_offset != 0 &&
                         encoding.disp_offset + sizeof displacement <= insn.size;
  if (has_field) std::memcpy(&displacement, insn.bytes + encoding.disp_offset, sizeof displacement);
  if (!has_field || displacement != operand.mem.disp) {
    result.kind = Kind::kUnmovable;
    return;
  }
  // A jump through memory stays what it is; it is never moved.
  if (result.kind == Kind::kPlain) result.kind = Kind::kRipRelative;
  result.target = result.begin_address() + insn.size + static_cast<uintptr_t>(int64_t{displacement});
  result.displacement = encoding.disp_offset;
}

void classify(csh handle, const cs_insn& insn, Instruction& result) {
  const cs_x86& x86 = insn.detail->x86;
  const auto in_group = [&](unsigned group) { return cs_insn_group(handle, &insn, group); };
  result.is_nop = insn.id == X86_INS_NOP;

  if (is_any_of(insn.id, {X86_INS_INT3, X86_INS_INT, X86_INS_INT1, X86_INS_INTO, X86_INS_UD0, X86_INS_UD2,
                          X86_INS_UD2B, X86_INS_HLT})) {
    result.kind = Kind::kTrap;
  } else if (in_group(CS_GRP_RET) || in_group(CS_GRP_IRET)) {
    result.kind = Kind::kReturn;
  } else if (is_any_of(insn.id, {X86_INS_LJMP, X86_INS_LCALL})) {
    result.kind = Kind::kUnmovable;
  } else if (insn.id == X86_INS_XBEGIN || insn.id == X86_INS_LOOP || in_group(CS_GRP_JUMP) ||
             in_group(CS_GRP_CALL) || in_group(CS_GRP_BRANCH_RELATIVE)) {
    if (x86.op_count == 1 && x86.operands[0].type == X86_OP_IMM) {
      result.kind = relative_branch(insn);
      result.target = static_cast<uintptr_t>(x86.operands[0].imm);
    } else if (insn.id == X86_INS_JMP) {
      result.kind = Kind::kIndirectJump;
    } else if (insn.id != X86_INS_CALL) {
      result.kind = Kind::kUnmovable;
    }
  }
  for (uint8_t i = 0; i < x86.op_count; ++i)
    if (x86.operands[i].type == X86_OP_MEM) classify_memory(insn, x86.operands[i], result);
}

}  // namespace

struct Decoder::Engine {
  csh handle = 0;
  cs_insn* scratch = nullptr;

  ~Engine() {
    if (scratch != nullptr) cs_free(scratch, 1);
    if (handle != 0) cs_close(&handle);
  }
};

Decoder::Decoder(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

Result<Decoder> Decoder::create() {
  auto engine = std::make_unique<Engine>();
  const bool ready = cs_open(CS_ARCH_X86, CS_MODE_64, &engine->handle) == CS_ERR_OK &&
                     cs_option(engine->handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK &&
                     (engine->scratch = cs_malloc(engine->handle)) != nullptr;
  if (!ready) return Error{"the disassembler could not be started"};
  return Decoder(std::move(engine));
}

bool Decoder::decode(const unsigned char* at, const unsigned char* end, Instruction& result) const {
  if (at >= end) return false;
  const uint8_t* code = at;
  size_t left = static_cast<size_t>(end - at);
  uint64_t address = reinterpret_cast<uint64_t>(at);
  if (!cs_disasm_iter(engine_->handle, &code, &left, &address, engine_->scratch)) return false;
  result = Instruction{};
  result.address = at;
  result.size = engine_->scratch->size;
  classify(engine_->handle, *engine_->scratch, result);
  return true;
}

}  // namespace onehop::interpose
