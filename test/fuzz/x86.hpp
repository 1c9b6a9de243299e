// What an x86-64 instruction's bytes alone say of its address: a second opinion, made without the
// disassembler that the plugin uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace onehop::fuzz {

struct Shape {
  bool ip_relative = false;     ///< has a memory operand that is counted from the instruction's end
  size_t branch_bytes = 0;      ///< size of the displacement at its end, if it is a relative branch
  bool is_call = false;         ///< of these, call rel32
  bool operand_prefix = false;  ///< 66: processors disagree on what that makes of a branch
};

/// Nothing where the bytes are too few.
inline std::optional<Shape> shape_of(const unsigned char* bytes, size_t size) {
  Shape shape;
  size_t at = 0;
  const auto next = [&](unsigned char& byte) { return at < size ? byte = bytes[at++], true : false; };
  unsigned char op = 0;
  const auto is_prefix = [](unsigned char b) {
    return b == 0x66 || b == 0x67 || b == 0xF0 || b == 0xF2 || b == 0xF3 || b == 0x2E || b == 0x36 ||
           b == 0x3E || b == 0x26 || b == 0x64 || b == 0x65 || (b & 0xF0) == 0x40;
  };
  do {
    if (!next(op)) return std::nullopt;
    shape.operand_prefix |= op == 0x66;
  } while (is_prefix(op));

  bool modrm = false, operand_is_register = false;
  const auto one_byte_has_modrm = [](unsigned char b) {
    if (b < 0x40) return (b & 7) < 4;
    return b == 0x63 || b == 0x69 || b == 0x6B || (b >= 0x80 && b <= 0x8F) || b == 0xC0 || b == 0xC1 ||
           b == 0xC6 || b == 0xC7 || (b >= 0xD0 && b <= 0xD3) || (b >= 0xD8 && b <= 0xDF) || b == 0xF6 ||
           b == 0xF7 || b >= 0xFE;
  };
  const auto two_bytes_have_modrm = [](unsigned char b) {
    return !((b >= 0x05 && b <= 0x0C) || b == 0x0E || (b >= 0x30 && b <= 0x37) || b == 0x77 ||
             (b >= 0x80 && b <= 0x8F) || (b >= 0xA0 && b <= 0xA2) || (b >= 0xA8 && b <= 0xAA) || b >= 0xC8) ||
           b >= 0xD0;
  };
  if (op == 0xC5 || op == 0xC4 || op == 0x62 || (op == 0x8F && at < size && (bytes[at] & 0x1F) >= 8)) {
    const size_t payload = op == 0xC5 ? 1 : op == 0x62 ? 3 : 2;  // VEX, EVEX, XOP
    const bool first_map = op == 0xC5 || (op == 0xC4 && at < size && (bytes[at] & 0x1F) == 1);
    at += payload;
    if (!next(op)) return std::nullopt;
    modrm = !(first_map && op == 0x77);
  } else if (op == 0x0F) {
    if (!next(op)) return std::nullopt;
    if (op == 0x38 || op == 0x3A) {
      if (!next(op)) return std::nullopt;
      modrm = true;
    } else {
      modrm = two_bytes_have_modrm(op);
      operand_is_register = op >= 0x20 && op <= 0x23;  // control and debug registers: the mode is ignored
      if ((op & 0xF0) == 0x80) shape.branch_bytes = 4;
    }
  } else {
    modrm = one_byte_has_modrm(op);
    if ((op & 0xF0) == 0x70 || (op >= 0xE0 && op <= 0xE3) || op == 0xEB) shape.branch_bytes = 1;
    if (op == 0xE8 || op == 0xE9) shape.branch_bytes = 4;
    shape.is_call = op == 0xE8;
    if (op == 0xC7 && at < size && bytes[at] == 0xF8) shape.branch_bytes = 4;  // xbegin
  }
  if (modrm) {
    if (!next(op)) return std::nullopt;
    shape.ip_relative = !operand_is_register && (op & 0xC7) == 0x05;
  }
  return shape;
}

}  // namespace onehop::fuzz
