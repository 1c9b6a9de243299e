// Makes a CUDA call: proves that recording_libcuda would notice one.
#include <cuda_runtime_api.h>

int main() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? 1 : 0;
}
