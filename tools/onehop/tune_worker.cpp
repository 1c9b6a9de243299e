// One process of `onehop tune`: an ordinary NCCL program with one rank, or with all of them in one thread. It
// does what the lines on its standard input say, and answers each with one line.
//
//   onehop-tune-worker RANKS FIRST COUNT [PLUGIN]    of RANKS ranks, those from FIRST on; rank r uses GPU r
//   modulo GPUs
//
//   id                          -> id HEX
//   join HEX                    -> machine JSON, or machine - without onehop
//   plan JSON                   -> ok, or no WHY
//   time BYTES CALLS SAMPLES    -> time US WRONG TAKEN: the slowest of its ranks, in a graph of CALLS calls
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "onehop/onehop.h"

namespace {

std::FILE* answers = nullptr;

void answer(const std::string& line) {
  std::fprintf(answers, "%s\n", line.c_str());
  std::fflush(answers);
}

[[noreturn]] void fail(const std::string& what) {
  answer("failed " + what);
  _exit(1);
}
void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}
void must(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail(std::string(what) + ": " + ncclGetErrorString(result));
}
#define MUST(call) must(call, #call)

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Small integers, so that sums are exact, and different for each rank and pattern.
int value(int rank, size_t i, int pattern) {
  return static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13 + static_cast<size_t>(pattern) * 29) % 17) -
         8;
}

uint16_t bfloat16(int value) {
  const auto exact = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &exact, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

const char* plugin_path = nullptr;

/// Of the plugin, if it is loaded.
template <class Function>
Function* plugin_function(const char* name) {
  void* plugin = plugin_path != nullptr ? dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (plugin == nullptr) return nullptr;
  return reinterpret_cast<Function*>(dlsym(plugin, name));
}

struct Rank {
  int rank = 0, device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  uint16_t *send = nullptr, *receive = nullptr;
  cudaGraphExec_t graph = nullptr;
  std::vector<cudaEvent_t> events;
};

class Worker {
 public:
  Worker(int ranks, int first, int count) : all_(ranks), ranks_(static_cast<size_t>(count)) {
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices));
    for (int i = 0; i < count; ++i) {
      ranks_[static_cast<size_t>(i)].rank = first + i;
      ranks_[static_cast<size_t>(i)].device = (first + i) % devices;
    }
  }

  std::string id() {
    ncclUniqueId id;
    MUST(ncclGetUniqueId(&id));
    std::string hex = "id ";
    for (const char c : id.internal) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(c));
      hex += digits;
    }
    return hex;
  }

  std::string join(const std::string& hex) {
    ncclUniqueId id;
    if (hex.size() != 2 * sizeof(id.internal)) fail("no id");
    for (size_t i = 0; i < sizeof(id.internal); ++i)
      id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    in_group([&](Rank& r) {
      MUST(ncclCommInitRank(&r.comm, all_, id, r.rank));
      MUST(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    });
    // The first call sets the communicator up.
    reserve(64);
    in_group([&](Rank& r) { reduce(r, 64); });
    synchronize();
    auto* get_machine = plugin_function<int(ncclComm*, char*, size_t)>("onehopGetMachine");
    if (get_machine == nullptr) return "machine -";
    std::vector<char> text(1 << 16);
    if (get_machine(ranks_[0].comm, text.data(), text.size()) == 0)
      return std::string("machine ") + text.data();
    onehopCommStatus status{};
    auto* get_status = plugin_function<int(ncclComm*, onehopCommStatus*)>("onehopGetCommStatus");
    if (get_status != nullptr) (void)get_status(ranks_[0].comm, &status);
    fail(std::string("onehop is off: ") + status.reason);
  }

  std::string plan(const std::string& text) {
    synchronize();
    auto* set_plan = plugin_function<int(ncclComm*, const char*, char*, size_t)>("onehopSetPlan");
    if (set_plan == nullptr) return "no onehop is not loaded";
    plan_ = text;
    for (Rank& r : ranks_) {
      char why[512] = "";
      if (set_plan(r.comm, text.c_str(), why, sizeof(why)) != 0) return std::string("no ") + why;
    }
    return "ok";
  }

  std::string time(size_t bytes, int calls, int samples) {
    obey_fault("hang", [] { pause(); });
    const uint64_t taken = taken_so_far();
    reserve(bytes);
    capture(bytes, calls);
    size_t wrong = 0;
    constexpr int kPatterns = 3;
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      fill(bytes, pattern);
      for (Rank& r : ranks_) MUST(cudaGraphLaunch(r.graph, r.stream));
      wrong += count_wrong(bytes, pattern);
    }
    fill(bytes, kPatterns);
    in_group([&](Rank& r) { reduce(r, bytes); });
    wrong += count_wrong(bytes, kPatterns);
    obey_fault("wrong", [&] { ++wrong; });
    double us = graph_us(calls, samples);    // also after a wrong result, which other ranks may not have
    obey_fault("slow", [&] { us += 1e8; });  // far beyond what a busy machine adds
    wrong += count_wrong(bytes, kPatterns);
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      MUST(cudaGraphExecDestroy(r.graph));
    }
    char line[128];
    std::snprintf(line, sizeof(line), "time %.3f %zu %d", us, wrong, taken_so_far() > taken ? 1 : 0);
    return line;
  }

 private:
  void in_group(const std::function<void(Rank&)>& part) {
    MUST(ncclGroupStart());
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      part(r);
    }
    MUST(ncclGroupEnd());
  }
  void synchronize() {
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      if (r.stream != nullptr) MUST(cudaStreamSynchronize(r.stream));
    }
  }
  void reduce(Rank& r, size_t bytes) const {
    MUST(ncclAllReduce(r.send, r.receive, bytes / sizeof(uint16_t), ncclBfloat16, ncclSum, r.comm, r.stream));
  }

  void reserve(size_t bytes) {
    if (bytes <= reserved_) return;
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      for (uint16_t** buffer : {&r.send, &r.receive}) {
        if (*buffer != nullptr) MUST(cudaFree(*buffer));
        MUST(cudaMalloc(reinterpret_cast<void**>(buffer), bytes));
        MUST(cudaMemset(*buffer, 0, bytes));
      }
      MUST(cudaDeviceSynchronize());
    }
    reserved_ = bytes;
  }

  void capture(size_t bytes, int calls) {
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      MUST(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeRelaxed));
    }
    for (int call = 0; call < calls; ++call) in_group([&](Rank& r) { reduce(r, bytes); });
    for (Rank& r : ranks_) {
      cudaGraph_t graph = nullptr;
      MUST(cudaSetDevice(r.device));
      MUST(cudaStreamEndCapture(r.stream, &graph));
      MUST(cudaGraphInstantiateWithFlags(&r.graph, graph, 0));
      MUST(cudaGraphUpload(r.graph, r.stream));
      MUST(cudaGraphDestroy(graph));
    }
  }

  /// Replays one behind the other, in one go: the first brings the ranks together, and each of the others is
  /// timed from end to end.
  double graph_us(int calls, int samples) {
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      while (r.events.size() <= static_cast<size_t>(samples)) {
        cudaEvent_t event = nullptr;
        MUST(cudaEventCreate(&event));
        r.events.push_back(event);
      }
    }
    for (size_t s = 0; s <= static_cast<size_t>(samples); ++s)
      for (Rank& r : ranks_) {
        MUST(cudaSetDevice(r.device));
        MUST(cudaGraphLaunch(r.graph, r.stream));
        MUST(cudaEventRecord(r.events[s], r.stream));
      }
    synchronize();
    double slowest = 0;
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      std::vector<double> times;
      for (size_t s = 0; s < static_cast<size_t>(samples); ++s) {
        float ms = 0;
        MUST(cudaEventElapsedTime(&ms, r.events[s], r.events[s + 1]));
        times.push_back(ms * 1000.0 / calls);
      }
      slowest = std::max(slowest, median(times));
    }
    return std::max(slowest, 0.001);
  }

  void fill(size_t bytes, int pattern) {
    std::vector<uint16_t> values(bytes / sizeof(uint16_t));
    for (Rank& r : ranks_) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = bfloat16(value(r.rank, i, pattern));
      MUST(cudaSetDevice(r.device));
      MUST(cudaMemcpy(r.send, values.data(), bytes, cudaMemcpyHostToDevice));
      MUST(cudaMemset(r.receive, 0xA5, bytes));
      MUST(cudaDeviceSynchronize());
    }
  }

  size_t count_wrong(size_t bytes, int pattern) {
    synchronize();
    std::vector<uint16_t> expected(bytes / sizeof(uint16_t)), values(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      int sum = 0;
      for (int r = 0; r < all_; ++r) sum += value(r, i, pattern);
      expected[i] = bfloat16(sum);
    }
    size_t wrong = 0;
    for (Rank& r : ranks_) {
      MUST(cudaSetDevice(r.device));
      MUST(cudaMemcpy(values.data(), r.receive, bytes, cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < values.size(); ++i) wrong += values[i] != expected[i];
    }
    return wrong;
  }

  uint64_t taken_so_far() const {
    auto* get = plugin_function<int(onehopStatistics*)>("onehopGetStatistics");
    onehopStatistics statistics{};
    if (get != nullptr) (void)get(&statistics);
    return statistics.taken;
  }

  /// For tests: ONEHOP_TEST_TUNE_FAULT=FAULT:TEXT makes rank 0 hang, be wrong or be
  /// slow while the plan has that text; always, if there is no text.
  void obey_fault(const std::string& fault, const std::function<void()>& act) const {
    const char* setting = std::getenv("ONEHOP_TEST_TUNE_FAULT");
    const std::string text = setting != nullptr ? setting : "";
    if (ranks_[0].rank == 0 && text.starts_with(fault + ":") &&
        plan_.find(text.substr(fault.size() + 1)) != std::string::npos)
      act();
  }

  const int all_;
  std::vector<Rank> ranks_;
  size_t reserved_ = 0;
  std::string plan_;
};

}  // namespace

int main(int argc, char** argv) {
  // NCCL writes to standard output.
  answers = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (argc < 4 || answers == nullptr) return 2;
  if (argc > 4) plugin_path = argv[4];
  Worker worker(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "id") {
      answer(worker.id());
    } else if (command == "join") {
      std::string hex;
      words >> hex;
      answer(worker.join(hex));
    } else if (command == "plan") {
      answer(worker.plan(line.substr(command.size() + 1)));
    } else if (command == "time") {
      size_t bytes = 0;
      int calls = 0, samples = 0;
      words >> bytes >> calls >> samples;
      answer(worker.time(bytes, calls, samples));
    } else {
      fail("no command " + command);
    }
  }
  _exit(0);  // communicators end with the process: a peer may be gone
}
