#include "plugin/interpose/relocate.hpp"

#include <cstring>
#include <limits>

namespace onehop::interpose {

using Kind = Instruction::Kind;

Result<int32_t> displacement(uintptr_t from, uintptr_t target) {
  const auto distance = static_cast<int64_t>(target - from);
  if (distance < std::numeric_limits<int32_t>::min() || distance > std::numeric_limits<int32_t>::max())
    return Error{"something it refers to is more than 2 GiB away from the trampoline"};
  return static_cast<int32_t>(distance);
}

namespace {

class Output {
 public:
  explicit Output(uintptr_t at) : at_(at) {}

  uintptr_t here() const { return at_ + bytes_.size(); }

  void copy(const unsigned char* bytes, size_t size) { bytes_.insert(bytes_.end(), bytes, bytes + size); }

  Status branch(std::initializer_list<unsigned char> opcode, uintptr_t target) {
    bytes_.insert(bytes_.end(), opcode);
    const Result<int32_t> distance = displacement(here() + sizeof(int32_t), target);
    if (!distance) return distance.error();
    append(*distance);
    return {};
  }

  Status rip_relative(const Instruction& instruction) {
    const Result<int32_t> distance = displacement(here() + instruction.size, instruction.target);
    if (!distance) return distance.error();
    const size_t start = bytes_.size();
    copy(instruction.address, instruction.size);
    std::memcpy(&bytes_[start + instruction.displacement], &*distance, sizeof *distance);
    return {};
  }

  std::vector<unsigned char> take() { return std::move(bytes_); }

 private:
  void append(int32_t value) {
    unsigned char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    copy(raw, sizeof raw);
  }

  uintptr_t at_;
  std::vector<unsigned char> bytes_;
};

Status emit(Output& output, const Instruction& instruction) {
  const unsigned char* bytes = instruction.address;
  switch (instruction.kind) {
    case Kind::kPlain:
      output.copy(bytes, instruction.size);
      return {};
    case Kind::kRipRelative:
      return output.rip_relative(instruction);
    case Kind::kCall:
      return output.branch({0xe8}, instruction.target);
    case Kind::kJump:
      return output.branch({0xe9}, instruction.target);
    case Kind::kBranch: {
      const unsigned char condition = (bytes[0] == 0x0f ? bytes[1] : bytes[0]) & 0x0f;
      return output.branch({0x0f, static_cast<unsigned char>(0x80 | condition)}, instruction.target);
    }
    case Kind::kReturn:
    case Kind::kIndirectJump:
    case Kind::kTrap:
    case Kind::kUnmovable:
      break;
  }
  return Error{"an instruction cannot be moved"};
}

}  // namespace

Result<std::vector<unsigned char>> relocate(const std::vector<Instruction>& instructions, uintptr_t at,
                                            uintptr_t resume) {
  Output output(at);
  for (const Instruction& instruction : instructions)
    if (Status emitted = emit(output, instruction); !emitted) return emitted.error();
  if (Status emitted = output.branch({0xe9}, resume); !emitted) return emitted.error();
  return output.take();
}

}  // namespace onehop::interpose
