// Memory for generated code within reach of an image.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/result.hpp"

namespace onehop::interpose {

/// One mapping, writable until it is sealed and executable from then on, never both. Unmapped with its owner,
/// unless kept.
class CodeArena {
 public:
  /// At least `size` bytes of which every one is within a rel32 displacement of every byte of [begin, end).
  static Result<CodeArena> map_near(uintptr_t begin, uintptr_t end, size_t size);

  CodeArena(CodeArena&& other) noexcept;
  CodeArena& operator=(CodeArena&& other) noexcept;
  ~CodeArena();

  unsigned char* data() const { return data_; }
  Status seal();
  /// Code elsewhere now leads here: stays mapped for the rest of the process.
  void keep() { kept_ = true; }

 private:
  CodeArena(unsigned char* data, size_t size) : data_(data), size_(size) {}
  unsigned char* data_ = nullptr;
  size_t size_ = 0;
  bool kept_ = false;
};

}  // namespace onehop::interpose
