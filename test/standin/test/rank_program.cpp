// One rank of a job of several processes, as an ordinary program would be: rank_program RANK RANKS
// [die|leave-blocked]
//
// The id travels on standard input and output: rank 0 prints it, the others read it.

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::printf("failed: %s\n", what);
  std::fflush(stdout);
  _exit(1);
}

ncclUniqueId exchange_id(int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    check(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
    std::string line = "id ";
    for (const char byte : id.internal) {
      char text[3];
      std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(byte));
      line += text;
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  } else {
    for (char& byte : id.internal) {
      unsigned value = 0;
      check(std::scanf("%2x", &value) == 1, "reading the id");
      byte = static_cast<char>(value);
    }
  }
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  alarm(60);
  if (argc < 3) return 2;
  const int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
  const std::string mode = argc > 3 ? argv[3] : "";
  const ncclUniqueId id = exchange_id(rank);
  check(cudaSetDevice(rank) == cudaSuccess, "cudaSetDevice");
  static ncclComm_t comm = nullptr;  // still held at exit, where that is the point: no leak
  check(ncclCommInitRank(&comm, ranks, id, rank) == ncclSuccess, "ncclCommInitRank");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream) == cudaSuccess, "cudaStreamCreate");
  constexpr size_t kCount = 50'000;
  float* data = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&data), kCount * sizeof(float)) == cudaSuccess, "cudaMalloc");
  std::vector<float> values(kCount, 1.0f);
  check(cudaMemcpy(data, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess,
        "cudaMemcpy");
  for (int i = 0; i < 5; ++i) {
    check(ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
          "ncclAllReduce");
  }
  check(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
  check(cudaMemcpy(values.data(), data, kCount * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess,
        "cudaMemcpy");
  std::printf("result %.0f\n", values.back());

  // The handle of a peer's memory works across processes.
  cudaIpcMemHandle_t handle;
  check(cudaIpcGetMemHandle(&handle, data) == cudaSuccess, "cudaIpcGetMemHandle");
  unsigned char *mine = nullptr, *all = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&mine), sizeof handle) == cudaSuccess, "cudaMalloc");
  check(cudaMalloc(reinterpret_cast<void**>(&all), ranks * sizeof handle) == cudaSuccess, "cudaMalloc");
  std::memcpy(mine, &handle, sizeof handle);
  check(ncclAllGather(mine, all, sizeof handle, ncclChar, comm, stream) == ncclSuccess, "ncclAllGather");
  check(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
  const int peer = (rank + 1) % ranks;
  std::memcpy(&handle, all + peer * sizeof handle, sizeof handle);
  float* peers = nullptr;
  check(peer == rank || cudaIpcOpenMemHandle(reinterpret_cast<void**>(&peers), handle, 1) == cudaSuccess,
        "cudaIpcOpenMemHandle");
  if (peers != nullptr) std::printf("peer %.0f\n", peers[kCount - 1]);

  // Nobody goes while a peer may still open its memory.
  check(ncclAllReduce(mine, mine, 1, ncclChar, ncclSum, comm, stream) == ncclSuccess, "ncclAllReduce");
  check(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
  if (mode == "leave-blocked") {
    // Exits while an operation that nobody else joins keeps the stream's thread busy.
    if (rank == 0) ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, comm, stream);
    return 0;
  }
  check(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
  std::printf("done\n");
  return 0;
}
