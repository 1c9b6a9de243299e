// The device interface on CUDA.
#pragma once

#include "plugin/device.hpp"

namespace onehop {

/// Null where onehop was built without CUDA. Makes no CUDA call.
Device* cuda_device();

}  // namespace onehop
