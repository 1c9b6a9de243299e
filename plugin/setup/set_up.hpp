// Setting up communicators, at their first call: the collective steps that all ranks take together.
#pragma once

#include <span>

#include "plugin/images.hpp"
#include "plugin/nccl_abi.hpp"

namespace onehop {

/// Sets up `comms`, none of which the registry knows, and enters each, on or off, into the registry. Several
/// at once where one thread holds several ranks: each step is taken for all of them before anyone waits.
/// Blocks until the peers have come as far. A communicator that NCCL itself finds unusable is left out of the
/// registry.
///
/// An error means that this rank could not even tell its peers to go without onehop, as when NCCL itself runs
/// out of memory: the caller must return it. Outside any NCCL group. The thread's device and capture mode are
/// afterwards as before.
nccl::Result set_up(Image&, std::span<const nccl::Comm> comms) noexcept;

}  // namespace onehop
