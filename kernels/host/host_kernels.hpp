// The kernels' CPU form, for the stand-in node: the same protocol code, compiled by the host compiler.
#pragma once

#include "kernels/operation.hpp"

namespace onehop {

struct Tampering;

/// Runs one all-reduce on the calling thread, and returns when it is done (or the communicator has failed).
/// `tampering`: over broken links (tampering.hpp).
void run_on_host(const CommView& comm, const Operation& operation, const Tampering* tampering = nullptr);

}  // namespace onehop
