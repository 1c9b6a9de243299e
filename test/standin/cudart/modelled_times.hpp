// Times on a modelled fabric (fabric.hpp) in the place of a CPU's, which say nothing about links:
//
//   ONEHOP_STANDIN_FABRIC=NAME[:NOISE[:SEED]]    NOISE: every time is off by up to this part of it, 0.2 for a
//   fifth
//
// Each stream has a clock, which every operation on it puts forward by the time that it takes on the fabric.
// Rank r of the model is the r-th physical device.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/operation.hpp"

namespace onehop::standin {

bool models_times();

/// Physical device of memory that was imported, for as long as it is mapped.
void note_owner(const void* memory, size_t bytes, int physical);
void forget_owner(const void* memory);

/// An operation of onehop runs on the stream now.
void spend(cudaStream_t stream, const CommView& comm, const Operation& operation);
/// An all-reduce of stock NCCL does.
void spend_nccl(cudaStream_t stream, size_t bytes);

/// us since the stream's first operation.
double clock_of(cudaStream_t stream);

}  // namespace onehop::standin
