// Arithmetic on arrays of NCCL's data types.
#pragma once

#include <nccl.h>

namespace onehop::standin {

size_t element_size(ncclDataType_t type);

/// Every element of an array, times a scalar of the same type.
void scale(ncclDataType_t type, void* to, const void* from, const void* scalar, size_t count);
/// 1/n, as a scalar of a floating-point type.
void make_inverse(ncclDataType_t type, int n, void* scalar);
bool is_floating(ncclDataType_t type);

/// Reduces `ranks` arrays in the order of the ranks; small floating-point types by way of float, rounded
/// once. ncclAvg divides integers by `ranks`, and is a sum of floating-point numbers, which were scaled
/// before.
void reduce(ncclDataType_t type, ncclRedOp_t op, void* to, const unsigned char* const* from, int ranks,
            size_t count);

}  // namespace onehop::standin
