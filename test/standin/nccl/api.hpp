// How the exported functions are written.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

/// As in NCCL: ncclX is weak, pncclX is strong, and both are the same code. Programs that redirect functions
/// replace the first bytes of this code, and NCCL's own begin with plain instructions; so these begin with
/// some that do nothing.
#define STANDIN_API(result, name, ...)                          \
  extern "C" [[gnu::alias(#name)]] result p##name(__VA_ARGS__); \
  extern "C" [[gnu::weak, gnu::noinline, gnu::patchable_function_entry(16)]] result name(__VA_ARGS__)
