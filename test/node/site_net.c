/* The network plugin of a site: something that NCCL keeps. */
extern char ncclNetPlugin_v8[1];
__attribute__((visibility("default"))) char ncclNetPlugin_v8[1] = {1};
