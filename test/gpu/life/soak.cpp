// Mixed traffic for a while, every result checked on the GPU: random sizes, types, operators, buffers,
// streams, groups, graphs, host delays and NCCL's other collectives, over communicators that come and go. One
// process after another, each with another method, its ranks in threads.
//
//   NCCL_NET_PLUGIN=libnccl-net-onehop.so nccl-soak OUT.json SECONDS [RANKS [STEADY [SEED [KIND...]]]]
//
// RANKS: 2 to 8 (default 8), several on one GPU where there are fewer GPUs (NCCL 2.30 or newer). While a file
// STEADY exists no communicator comes or goes, nor does the first process end. KIND: the names of kKinds; all
// but "stock" unless named. A process whose ranks get nowhere for 60 s (ONEHOP_TEST_STUCK_S) ends itself and
// says where they are. ONEHOP_TEST_COMMUNICATORS: 1 or 2 of them at a time instead of 3.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "test/gpu/life/soak_ranks.hpp"
#include "test/gpu/results.hpp"

namespace onehop::test {
namespace {

struct Kind {
  const char *name, *algo, *staging, *max_bytes;
  size_t bytes;
  bool stock = false;  ///< NCCL alone, to compare: not judged
};
constexpr Kind kKinds[] = {
    {"auto", "auto", "auto", "128K", 128 << 10},
    {"oneshot-push", "oneshot-push", "auto", "8M", 8 << 20},
    {"twoshot-push", "twoshot-push", "auto", "512K", 512 << 10},
    {"oneshot-staged", "oneshot-staged", "auto", "128K", 128 << 10},
    {"twoshot-staged", "twoshot-staged", "auto", "8M", 8 << 20},
    {"oneshot-pull", "oneshot-pull", "auto", "128K", 128 << 10},
    {"twoshot-pull", "twoshot-pull", "auto", "512K", 512 << 10},
    {"islands", "islands", "auto", "128K", 128 << 10},
    {"host", "auto", "host", "128K", 128 << 10},
    {"large", "auto", "auto", "8M", 8 << 20},
    {"stock", "auto", "auto", "128K", 128 << 10, true},
};

double stuck_seconds() {
  const char* text = std::getenv("ONEHOP_TEST_STUCK_S");
  return text == nullptr ? 60 : std::atof(text);
}
constexpr double kStart = 45;  ///< most that starting and ending take, beside a process's share of the time
constexpr double kMostSteady = 300;

/// When a process must have ended, since its start.
double most_seconds(double share, const std::string& steady) {
  return share + kStart + (steady.empty() ? 0 : kMostSteady);
}

/// Prints what goes on, and ends a process in which nothing does.
void watch(const Soak& soak, const Kind& kind, const std::atomic<bool>& done) {
  uint64_t last = 0;
  const double begin = now_s(), most = stuck_seconds();
  double moved = begin, said = begin;
  while (!done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double now = now_s();
    if (soak.progress != last) {
      last = soak.progress;
      moved = now;
    }
    if (now - moved > most) {
      std::printf("soak %s: stuck after %.1f s and %llu calls\n", kind.name, moved - begin,
                  static_cast<unsigned long long>(soak.calls));
      soak.print();
      fail("no progress");
    }
    if (now - said < 30) continue;
    said = now;
    const onehopStatistics s = LoadedOnehop().statistics();
    std::printf("soak %s: %.0f s, %llu calls, %llu replays, %llu taken, %llu passed, %llu elements right\n",
                kind.name, now - begin, static_cast<unsigned long long>(soak.calls),
                static_cast<unsigned long long>(soak.replays), static_cast<unsigned long long>(s.taken),
                static_cast<unsigned long long>(s.passed), static_cast<unsigned long long>(soak.checked));
    std::fflush(stdout);
  }
}

int be_process(char** argv) {
  const Kind& kind = kKinds[std::stoul(argv[2])];
  const double seconds = std::stod(argv[3]);
  alarm(static_cast<unsigned>(most_seconds(seconds, argv[5])));
  Soak soak(static_cast<uint32_t>(std::stoul(argv[4])), static_cast<uint32_t>(std::stoul(argv[6])),
            kind.bytes, seconds, argv[5]);
  if (const char* text = std::getenv("ONEHOP_TEST_COMMUNICATORS"))
    soak.slots_used = std::clamp(static_cast<uint32_t>(std::atoi(text)), 1u, 3u);
  for (auto& step : soak.steps) step = "starts";
  std::atomic<bool> done{false};
  std::thread watcher([&] { watch(soak, kind, done); });
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < soak.ranks; ++r) threads.emplace_back([&soak, r] { soak_rank(soak, r); });
  for (std::thread& thread : threads) thread.join();
  done = true;
  watcher.join();
  const LoadedOnehop onehop;
  if (!onehop.found()) fail("onehop is not loaded");
  const onehopStatistics s = onehop.statistics();
  if ((s.taken == 0) != kind.stock) fail(kind.stock ? "calls were taken" : "no call was taken");
  std::string off;
  for (const Soak::Slot& slot : soak.slots)
    if (slot.ranks > 0 && !slot.on) off += std::to_string(slot.ranks) + " ranks: " + slot.reason + "; ";
  std::ofstream(argv[7]) << Results::Json{{"kind", kind.name},
                                          {"algo", kind.algo},
                                          {"staging", kind.staging},
                                          {"max_bytes", kind.max_bytes},
                                          {"ranks", soak.ranks},
                                          {"seconds", seconds},
                                          {"seed", soak.seed},
                                          {"communicators", soak.communicators.load()},
                                          {"calls", soak.calls.load()},
                                          {"replays", soak.replays.load()},
                                          {"taken", s.taken},
                                          {"passed", s.passed},
                                          {"elements_checked", soak.checked.load()},
                                          {"wrong", 0},
                                          {"off", off}};
  return 0;
}

/// Runs one process; its row, or an empty one.
Results::Json run(size_t kind, double seconds, const std::string& ranks, const std::string& steady,
                  uint32_t seed, const std::string& part) {
  std::vector<std::string> arguments = {"/proc/self/exe",        "--process", std::to_string(kind),
                                        std::to_string(seconds), ranks,       steady,
                                        std::to_string(seed),    part};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  unlink(part.c_str());
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("ONEHOP_ALGO", kKinds[kind].algo, 1);
    setenv("ONEHOP_STAGING", kKinds[kind].staging, 1);
    setenv("ONEHOP_MAX_BYTES", kKinds[kind].max_bytes, 1);
    if (kKinds[kind].stock) setenv("ONEHOP_ENABLE", "0", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    setenv("NCCL_MAX_NCHANNELS", "4", 0);  // so that the kernels of all ranks fit on one GPU at once
    setenv("NCCL_DEBUG", "WARN", 0);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = -1;
  const double deadline = now_s() + most_seconds(seconds, steady) + 5;
  while (waitpid(child, &status, WNOHANG) != child) {
    if (now_s() > deadline) kill(child, SIGKILL);
    if (now_s() > deadline + 15) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::ifstream file(part);
  if (status != 0 || !file) {
    std::printf("%-7s soak %s: status %d\n", kKinds[kind].stock ? "seen" : "FAILED", kKinds[kind].name,
                status);
    return {};
  }
  Results::Json row = Results::Json::parse(file);
  unlink(part.c_str());
  return row;
}

/// The kinds that are named, or all but stock NCCL.
std::vector<size_t> chosen_kinds(int count, char** names) {
  std::vector<size_t> chosen;
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    const bool named = std::any_of(names, names + count,
                                   [&](const char* name) { return std::string(name) == kKinds[k].name; });
    if (count > 0 ? named : !kKinds[k].stock) chosen.push_back(k);
  }
  if (chosen.size() < static_cast<size_t>(count)) fail("there is no such kind of soak");
  return chosen;
}

int run_all(int argc, char** argv) {
  const std::string out = argv[1], ranks = argc > 3 ? argv[3] : "8", steady = argc > 4 ? argv[4] : "";
  const double seconds = std::stod(argv[2]), begin = now_s();
  const auto seed = static_cast<uint32_t>(argc > 5 ? std::atoi(argv[5]) : 1);
  const std::vector<size_t> kinds = chosen_kinds(std::max(argc - 6, 0), argv + std::min(argc, 6));
  alarm(static_cast<unsigned>(seconds) + 60);
  if (std::getenv("NCCL_NET_PLUGIN") == nullptr) fail("NCCL_NET_PLUGIN is not set");
  int version = 0, gpus = 0;
  MUST(ncclGetVersion(&version));
  MUST(cudaGetDeviceCount(&gpus));
  Results results("mixed traffic, every result checked", argc, argv, gpus > 1 ? "NVLink or PCIe" : "same GPU",
                  version);
  int passed = 0, failed = 0;
  for (size_t at = 0; at < kinds.size(); ++at) {
    const Kind& kind = kKinds[kinds[at]];
    // What is left is shared by the processes that are left, and each takes a moment to start.
    const double left = begin + seconds - now_s(), share = left / static_cast<double>(kinds.size() - at) - 4;
    const Results::Json row = run(kinds[at], std::max(share, 1.0), ranks, steady,
                                  seed + static_cast<uint32_t>(kinds[at]), out + ".part");
    if (!kind.stock) ++(row.is_null() ? failed : passed);
    if (row.is_null()) continue;
    std::printf(
        "%-7s soak %s, up to %s: %s s, %s communicators, %s calls, %s taken, %s passed, %s elements, "
        "0 wrong%s\n",
        kind.stock ? "seen" : "passed", kind.name, kind.max_bytes, row["seconds"].dump().c_str(),
        row["communicators"].dump().c_str(), row["calls"].dump().c_str(), row["taken"].dump().c_str(),
        row["passed"].dump().c_str(), row["elements_checked"].dump().c_str(),
        row["off"] == "" ? "" : ("; off: " + row["off"].get<std::string>()).c_str());
    std::fflush(stdout);
    results.add_to("soak", row);
    results.write(out);
  }
  results.write(out);
  std::printf("nccl-soak: %d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace onehop::test

int main(int argc, char** argv) {
  using namespace onehop::test;
  if (argc == 8 && std::string(argv[1]) == "--process") return be_process(argv);
  if (argc < 3) fail("usage: nccl-soak OUT.json SECONDS [RANKS [STEADY [SEED [KIND...]]]]");
  return run_all(argc, argv);
}
