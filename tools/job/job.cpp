// An ordinary NCCL program: it knows nccl.h and the CUDA runtime, and nothing of onehop. One process is one
// rank; each size is reduced many times, checked, and timed. Prints one JSON line per size.
//
//   onehop-job --rank R --ranks N --id-file PATH [--device D]
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "onehop-job: %s\n", what.c_str());
  std::exit(1);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail(std::string(what) + ": " + ncclGetErrorString(result));
}

struct Arguments {
  int rank = -1, ranks = 0, device = 0;
  std::string id_file;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--rank")
      arguments.rank = std::atoi(argv[i + 1]);
    else if (name == "--ranks")
      arguments.ranks = std::atoi(argv[i + 1]);
    else if (name == "--device")
      arguments.device = std::atoi(argv[i + 1]);
    else if (name == "--id-file")
      arguments.id_file = argv[i + 1];
    else
      fail("unknown argument " + name);
  }
  if (arguments.rank < 0 || arguments.ranks < 1 || arguments.id_file.empty())
    fail("usage: onehop-job --rank R --ranks N --id-file PATH [--device D]");
  return arguments;
}

/// Rank 0 makes the id and publishes it in a file, whole at once; the others wait for the file.
ncclUniqueId agree_on_id(const Arguments& arguments) {
  ncclUniqueId id;
  if (arguments.rank == 0) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string draft = arguments.id_file + ".draft";
    std::FILE* file = std::fopen(draft.c_str(), "wb");
    if (file == nullptr || std::fwrite(&id, sizeof(id), 1, file) != 1) fail("cannot write " + draft);
    std::fclose(file);
    if (std::rename(draft.c_str(), arguments.id_file.c_str()) != 0) fail("cannot write " + arguments.id_file);
    return id;
  }
  std::FILE* file = nullptr;
  while ((file = std::fopen(arguments.id_file.c_str(), "rb")) == nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (std::fread(&id, sizeof(id), 1, file) != 1) fail("cannot read " + arguments.id_file);
  std::fclose(file);
  return id;
}

class Job {
 public:
  explicit Job(const Arguments& arguments) : rank_(arguments.rank), ranks_(arguments.ranks) {
    check(cudaSetDevice(arguments.device), "cudaSetDevice");
    const ncclUniqueId id = agree_on_id(arguments);
    check(ncclCommInitRank(&comm_, ranks_, id, rank_), "ncclCommInitRank");
    check(cudaStreamCreate(&stream_), "cudaStreamCreate");
    check(cudaMalloc(reinterpret_cast<void**>(&send_), kLargest), "cudaMalloc");
    check(cudaMalloc(reinterpret_cast<void**>(&receive_), kLargest), "cudaMalloc");
  }
  ~Job() {
    check(cudaFree(send_), "cudaFree");
    check(cudaFree(receive_), "cudaFree");
    check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    check(ncclCommDestroy(comm_), "ncclCommDestroy");
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run(size_t bytes) {
    const size_t count = bytes / sizeof(float);
    size_t wrong = 0;
    std::vector<double> microseconds;
    for (int call = 0; call < kCalls; ++call) {
      fill(count, call);
      const auto start = std::chrono::steady_clock::now();
      check(ncclAllReduce(send_, receive_, count, ncclFloat, ncclSum, comm_, stream_), "ncclAllReduce");
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      microseconds.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      wrong += count_wrong(count, call);
    }
    std::nth_element(microseconds.begin(), microseconds.begin() + kCalls / 2, microseconds.end());
    std::printf("{\"bytes\":%zu,\"calls\":%d,\"wrong\":%zu,\"us\":%.2f}\n", bytes, kCalls, wrong,
                microseconds[kCalls / 2]);
    std::fflush(stdout);
  }

  static constexpr size_t kLargest = 1 << 20;
  static constexpr int kCalls = 20;

 private:
  /// Small integers, different in every call, whose sum is exact in any order.
  static float value(int rank, int call, size_t i) {
    return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13 + static_cast<size_t>(call) * 29) %
                              101);
  }

  void fill(size_t count, int call) {
    host_.resize(count);
    for (size_t i = 0; i < count; ++i) host_[i] = value(rank_, call, i);
    check(cudaMemcpyAsync(send_, host_.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
    check(cudaMemsetAsync(receive_, 0xA5, count * sizeof(float), stream_), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  size_t count_wrong(size_t count, int call) {
    check(cudaMemcpy(host_.data(), receive_, count * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      float expected = 0;
      for (int r = 0; r < ranks_; ++r) expected += value(r, call, i);
      wrong += host_[i] != expected;
    }
    return wrong;
  }

  int rank_, ranks_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  float *send_ = nullptr, *receive_ = nullptr;
  std::vector<float> host_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  {
    Job job(arguments);
    for (const size_t bytes : {8, 64, 1024, 4096, 16384, 43008, 65536, 262144, 1048576}) job.run(bytes);
  }
  std::printf("{\"done\":true}\n");
}
