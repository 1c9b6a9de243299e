// What the plugin beside this command was built with; from the build.
#pragma once

namespace onehop::tool {

inline constexpr const char* kBuiltWithCuda = ONEHOP_CUDA_VERSION;  ///< "13.0"; empty: without CUDA
inline constexpr const char* kGpuArchs = ONEHOP_GPU_ARCHS;          ///< "80,90"; empty: without CUDA

}  // namespace onehop::tool
