// The only header of kernels/cuda that plugin/ sees.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/geometry.hpp"
#include "kernels/operation.hpp"

namespace onehop {

/// Enqueues one all-reduce on `stream`, on the current device.
cudaError_t launch(const CommView&, const Operation&, const Geometry&, cudaStream_t stream);

/// Loads every kernel on the current device.
cudaError_t load_cuda_kernels();

}  // namespace onehop
