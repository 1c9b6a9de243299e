// CUDA 13 gave the names to the functions that tell and take what is said of an edge of a graph, _v2 until
// then.
#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000
#define ONEHOP_V2(name) name
#else
#define ONEHOP_V2(name) name##_v2
#endif
