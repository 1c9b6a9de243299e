// The functions that stand in for libnccl's, one set for each image that may be taken over.
#pragma once

#include <vector>

#include "plugin/images.hpp"

namespace onehop {

/// The hooks of image number `image.index`; installing them writes the originals into `image.original`.
std::vector<interpose::Hook> hooks_of(Image& image);

}  // namespace onehop
