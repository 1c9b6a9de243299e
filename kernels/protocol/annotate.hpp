// One source, two compilers: the only place of this folder that knows whether nvcc is at work.
#pragma once

#ifdef __CUDACC__
#define ONEHOP_HD __host__ __device__ __forceinline__
#define ONEHOP_HD_COLD \
  __host__ __device__ __noinline__  // kept out of the way of the instructions that every call needs
#define ONEHOP_UNROLL _Pragma("unroll")
#else
#define ONEHOP_HD inline
#define ONEHOP_HD_COLD inline
#define ONEHOP_UNROLL
#endif
