#include "tools/onehop/cuda_driver.hpp"

namespace onehop::tool {

std::string CudaDriver::start() const {
  const auto init = library_.find<int(unsigned)>("cuInit");
  if (init == nullptr) return "libcuda.so.1 has no cuInit";
  const int error = init(0);
  if (error == 0) return "";
  const char* text = nullptr;
  if (!library_.ok("cuGetErrorString", error, &text) || text == nullptr) text = "unknown error";
  return "cuInit: " + std::string(text) + " (" + std::to_string(error) + ")";
}

}  // namespace onehop::tool
