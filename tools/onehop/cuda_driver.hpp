// The few calls of the CUDA driver interface that this command makes.
#pragma once

#include <string>

#include "tools/onehop/library.hpp"

namespace onehop::tool {

class CudaDriver {
 public:
  CudaDriver() : library_("libcuda.so.1") {}
  explicit operator bool() const { return static_cast<bool>(library_); }

  /// Empty: started. Else why not.
  std::string start() const;
  const Library& library() const { return library_; }

 private:
  Library library_;
};

}  // namespace onehop::tool
