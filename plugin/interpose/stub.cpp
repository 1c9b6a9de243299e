#include "plugin/interpose/stub.hpp"

#include <cstring>

#include "plugin/interpose/relocate.hpp"

namespace onehop::interpose {

std::vector<unsigned char> make_stub(const void* replacement, size_t pushes) {
  // lea rsp, [rsp + 8 * pushes]: leaves the flags alone. A push does not change its register.
  const std::array<unsigned char, 5> take_back{0x48, 0x8d, 0x64, 0x24,
                                               static_cast<unsigned char>(8 * pushes)};
  // jmp [rip + 0]; .quad replacement: needs no register.
  const std::array<unsigned char, 6> jump{0xff, 0x25, 0, 0, 0, 0};
  unsigned char address[sizeof replacement];
  std::memcpy(address, &replacement, sizeof replacement);

  std::vector<unsigned char> code;
  code.reserve(kStubSize);
  if (pushes != 0) code.insert(code.end(), take_back.begin(), take_back.end());
  code.insert(code.end(), jump.begin(), jump.end());
  code.insert(code.end(), std::begin(address), std::end(address));
  return code;
}

Result<JumpBytes> make_jump(const unsigned char* at, const unsigned char* stub) {
  const Result<int32_t> distance =
      displacement(reinterpret_cast<uintptr_t>(at) + kJumpSize, reinterpret_cast<uintptr_t>(stub));
  if (!distance) return distance.error();
  JumpBytes jump{0xe9};
  std::memcpy(jump.data() + 1, &*distance, sizeof *distance);
  return jump;
}

}  // namespace onehop::interpose
