// The test object with planted functions, loaded by tests.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin/interpose/interpose.hpp"

namespace onehop::interpose::test {

using Function = long (*)(long);

/// One loading of an object.
class Loaded {
 public:
  explicit Loaded(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  unsigned char* address(const std::string& symbol) const {
    return static_cast<unsigned char*>(dlsym(handle_, symbol.c_str()));
  }
  Function function(const std::string& symbol) const { return reinterpret_cast<Function>(address(symbol)); }

  /// The only image, besides the test itself, that defines `symbol`.
  static Image image(const char* symbol = "good_lea") {
    const std::vector<Image> images = images_defining(symbol);
    EXPECT_EQ(images.size(), 1u);
    return images.empty() ? Image{} : images[0];
  }

 private:
  void* handle_;
};

/// A replacement that counts and passes on to the original.
struct Passing {
  static inline void* original = nullptr;
  static inline int calls = 0;
  static inline long argument = 0;
  static long call(long x) {
    ++calls;
    argument = x;
    return reinterpret_cast<Function>(original)(x);
  }
  static Hook hook(const char* symbol) {
    original = nullptr;
    calls = 0;
    return {symbol, reinterpret_cast<void*>(&call), &original};
  }
};

}  // namespace onehop::interpose::test
