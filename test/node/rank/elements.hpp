// The element types and operators of NCCL, and what a reduction must come to: independent of onehop's own
// arithmetic.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace onehop::node {

using Bytes = std::vector<unsigned char>;

struct ElementType {
  ncclDataType_t type;
  const char* name;
  size_t bytes;
  bool floating;
};
const std::vector<ElementType>& all_types();
const ElementType& type_named(const std::string& name);

/// Writes `value`, which the type can hold, as an element.
void put_element(const ElementType&, uint32_t value, unsigned char* to);

struct Operator {
  ncclRedOp_t op;
  const char* name;
};
/// Those that a program need not make.
const std::vector<Operator>& all_operators();

/// Whether `got` holds, at elements first .. first+count, the ranks' inputs reduced in the order of the
/// ranks. Any NaN is as good as another.
bool holds_reduction(const ElementType&, ncclRedOp_t, const Bytes& got, const std::vector<Bytes>& inputs,
                     size_t first, size_t count);

/// Random bits: every exponent, infinities, NaNs, denormals; stretches of what the protocol itself puts into
/// memory (all ones, zeros) and of -0; and numbers around 1, whose products are numbers.
Bytes random_inputs(const ElementType&, size_t count, uint64_t seed);

/// Adds to a hash (FNV-1a).
void add_to_hash(uint64_t& hash, const unsigned char* data, size_t bytes);

}  // namespace onehop::node
