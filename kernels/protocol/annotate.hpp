// One source, two compilers: the only place of this folder that knows whether nvcc is at work.
#pragma once

#ifdef __CUDACC__
#define ONEHOP_HD __host__ __device__ __forceinline__
#else
#define ONEHOP_HD inline
#endif
