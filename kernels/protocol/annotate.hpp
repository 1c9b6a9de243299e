// One source, two compilers: the only place of this folder that knows whether nvcc is at work.
#pragma once

#ifdef __CUDACC__
#define ONEHOP_HD __host__ __device__ __forceinline__
#define ONEHOP_UNROLL _Pragma("unroll")
#else
#define ONEHOP_HD inline
#define ONEHOP_UNROLL
#endif
