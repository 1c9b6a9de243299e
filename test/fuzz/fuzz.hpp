// What the fuzz targets share: a property that must hold, and what a line for a user must look like.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

/// The target: libFuzzer calls it with one input after another.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace onehop::fuzz {

/// A property that does not hold is a finding, like a crash.
inline void require(bool holds, const char* property, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "property violated: %s%s%s\n", property, detail.empty() ? "" : ": ", detail.c_str());
  std::abort();
}

/// One line, which no terminal and no reader of the log can take for anything else.
inline void require_line(const std::string& text) {
  for (const char c : text)
    require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "no control character in a line", text);
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Changes the bytes of `object` by those of the input: an input of zeros leaves it as it is. Returns what is
/// left of the input.
template <class T>
void disturb(T& object, const uint8_t*& data, size_t& size) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &object, sizeof(T));
  for (size_t i = 0; i < sizeof(T) && size > 0; ++i, --size) bytes[i] ^= *data++;
  std::memcpy(static_cast<void*>(&object), bytes, sizeof(T));
}

}  // namespace onehop::fuzz
