// A shared library that may not be there, and its functions.
#pragma once

#include <dlfcn.h>

namespace onehop::tool {

class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  explicit operator bool() const { return handle_ != nullptr; }

  template <class Function>
  Function* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  /// Calls a function that returns 0 for success and takes exactly these types; false if it fails or there is
  /// none.
  template <class... Arguments>
  bool ok(const char* function, Arguments... arguments) const {
    const auto found = find<int(Arguments...)>(function);
    return found != nullptr && found(arguments...) == 0;
  }

 private:
  void* handle_;  ///< never closed: drivers do not like it
};

}  // namespace onehop::tool
