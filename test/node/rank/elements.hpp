// The element types of NCCL that onehop serves, and what their sum must be: independent of onehop's own
// arithmetic.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onehop::node {

using Bytes = std::vector<unsigned char>;

struct ElementType {
  ncclDataType_t type;
  const char* name;
  size_t bytes;
};
const std::vector<ElementType>& served_types();

/// Whether `got` holds, at elements first .. first+count, the sum of the ranks' inputs in the order of the
/// ranks. Any NaN is as good as another.
bool holds_sum(const ElementType&, const Bytes& got, const std::vector<Bytes>& inputs, size_t first,
               size_t count);

/// Random bits: every exponent, infinities, NaNs, denormals; and stretches of what the protocol itself puts
/// into memory (all ones, zeros) and of -0.
Bytes random_inputs(const ElementType&, size_t count, uint64_t seed);

/// Adds to a hash (FNV-1a).
void add_to_hash(uint64_t& hash, const unsigned char* data, size_t bytes);

}  // namespace onehop::node
