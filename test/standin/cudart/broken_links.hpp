// Links that a test wants broken in this process:
//
//   ONEHOP_STANDIN_FAULT=drop|zero|flip|mirror|half|delay[:K]   what this process writes to peers' device
//   memory ONEHOP_STANDIN_HOST_FAULT=...                               what it reads in host memory
//
// K: only in the K-th memory that this process imports (device memory) or registers (host memory; of each
// communicator its own comes first).
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/host/tampering.hpp"

namespace onehop::standin {

/// A memory of a peer's is there, or of this process's own, which nothing is done to.
void note_imported(const void* memory, size_t bytes);
void note_registered(const void* memory, size_t bytes);
void note_gone(const void* memory);

/// What is to be done to an operation that begins now; null: nothing.
std::shared_ptr<const Tampering> tampering_for(const CommView& comm);

}  // namespace onehop::standin
