// FNV-1a, 64 bits: to compare texts between ranks. Not for adversaries.
#pragma once

#include <cstdint>
#include <string_view>

namespace onehop {

class Hash {
 public:
  /// Each text is closed by a zero byte: {"ab", "c"} and {"a", "bc"} differ.
  Hash& add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0);
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3ull; }
  uint64_t value_ = 0xCBF29CE484222325ull;
};

}  // namespace onehop
