// All-reduces of models in decoding: two for each layer and step, of batch x hidden elements.
#pragma once

#include <cstddef>
#include <span>

namespace onehop::bench {

struct Model {
  const char* name;  ///< of the repository at huggingface.co whose config.json has the numbers
  size_t hidden;     ///< hidden_size
  size_t layers;     ///< num_hidden_layers
};

/// By hidden size, then layers.
std::span<const Model> models();

/// Behind the attention's and behind the feed-forward's output projection, each split by tensor parallelism.
inline constexpr size_t kCallsPerLayer = 2;

inline constexpr size_t kBatches[] = {1, 2, 4, 8, 16, 32};

/// The profile that the project is measured by: a step of 61 layers of 7168 in bfloat16 with three tokens.
inline constexpr size_t kDecodeBytes = 43008, kDecodeCalls = 122;

}  // namespace onehop::bench
