// Communicators that come and go, or are many: what they give back, and what they may hold.
#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "test/gpu/life/rank.hpp"

namespace onehop::test {
namespace {

size_t entries(const char* folder) {
  size_t count = 0;
  DIR* open = opendir(folder);
  must(open != nullptr, folder);
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

/// What a process holds.
struct Held {
  double device_mib = 0, resident_mib = 0, locked_mib = 0, descriptors = 0, mappings = 0, threads = 0;

  static Held now() {
    Held held;
    size_t free = 0, total = 0;
    MUST(cudaMemGetInfo(&free, &total));
    held.device_mib = static_cast<double>(total - free) / (1 << 20);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      std::istringstream words(line);
      std::string name;
      double kib = 0;
      words >> name >> kib;
      if (name == "VmRSS:") held.resident_mib = kib / 1024;
      if (name == "VmLck:" || name == "VmPin:") held.locked_mib += kib / 1024;
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++held.mappings;
    held.descriptors = static_cast<double>(entries("/proc/self/fd"));
    held.threads = static_cast<double>(entries("/proc/self/task"));
    return held;
  }
  std::string text() const {
    char text[160];
    std::snprintf(text, sizeof(text),
                  "GPU %.0f MiB, RSS %.1f, locked %.1f, fds %.0f, maps %.0f, threads %.0f", device_mib,
                  resident_mib, locked_mib, descriptors, mappings, threads);
    return text;
  }
  /// Each figure's lower one: what is held only for a moment does not count.
  static Held least(const Held& a, const Held& b) {
    return {std::min(a.device_mib, b.device_mib), std::min(a.resident_mib, b.resident_mib),
            std::min(a.locked_mib, b.locked_mib), std::min(a.descriptors, b.descriptors),
            std::min(a.mappings, b.mappings),     std::min(a.threads, b.threads)};
  }
};

void use(Rank& self, Checked& checked, ncclComm_t comm, cudaStream_t stream, uint32_t seed) {
  for (uint32_t i = 0; i < 3; ++i)
    checked.all_reduce({.count = 1 + (seed * 37 + i * 1009) % 20000, .seed = seed + i}, comm, self.ranks,
                       stream);
  MUST(cudaStreamSynchronize(stream));
}

}  // namespace

/// "CYCLES,SECONDS": communicators made, used (eager and in a graph) and destroyed, as many as there is time
/// for. All ranks are threads of one process.
CASE(cycles) {
  const size_t comma = self.argument.find(',');
  const uint32_t most = static_cast<uint32_t>(std::stoul(self.argument));
  const double seconds = std::stod(self.argument.substr(comma + 1)), begin = now_s();
  constexpr uint32_t kWarm = 10, kWindow = 5;
  Checked checked(self, 256 << 10);
  const Stream stream;
  Held early, late;
  uint32_t cycle = 0;
  for (;; ++cycle) {
    self.step("cycle " + std::to_string(cycle));
    const ncclComm_t comm = self.join();
    use(self, checked, comm, stream, cycle * 8);
    self.meet();
    {
      const Graph graph(stream, [&] {
        for (uint32_t i = 0; i < 2; ++i)
          checked.all_reduce({.count = 3000, .seed = cycle * 8 + 4 + i}, comm, self.ranks, stream);
      });
      self.meet();
      for (int replay = 0; replay < 3; ++replay) graph.launch(stream);
      stream.synchronize();
      self.meet();
    }
    MUST(ncclCommDestroy(comm));
    self.meet();
    if (self.rank == 0) {
      const Held now = Held::now();
      if (cycle >= kWarm && cycle < kWarm + kWindow) early = cycle == kWarm ? now : Held::least(early, now);
      late = cycle % kWindow == 0 ? now : Held::least(late, now);
      if (cycle % 20 == 0) self.note("after cycle " + std::to_string(cycle) + ": " + now.text());
      // Whole windows, so that the last one is not a single moment.
      const bool full = cycle % kWindow == kWindow - 1;
      if (full && (cycle + 1 >= most || now_s() - begin > seconds)) self.shared.stop = 1;
    }
    self.meet();
    if (self.shared.stop != 0) break;
  }
  checked.verify("communicators that come and go");
  if (self.rank != 0) return;
  must(cycle >= 2 * (kWarm + kWindow) - 1, "too few cycles in the time: " + std::to_string(cycle + 1));
  self.note("early: " + early.text());
  self.note("late:  " + late.text());
  self.figure("cycles", cycle + 1);
  self.figure("seconds for a cycle", (now_s() - begin) / (cycle + 1));
  self.figure("GPU memory grown, MiB", late.device_mib - early.device_mib);
  self.figure("RSS grown, MiB", late.resident_mib - early.resident_mib);
  self.figure("locked memory grown, MiB", late.locked_mib - early.locked_mib);
  self.figure("mappings grown", late.mappings - early.mappings);
  self.figure("descriptors grown", late.descriptors - early.descriptors);
  must(late.device_mib - early.device_mib <= 16, "GPU memory is not given back");
  must(late.resident_mib - early.resident_mib <= 48, "host memory is not given back");
  must(late.locked_mib - early.locked_mib <= 4, "locked memory is not given back");
  must(late.mappings - early.mappings <= 60, "mappings are left");
  must(late.descriptors - early.descriptors <= 4, "descriptors are left");
  must(late.threads - early.threads <= 2, "threads are left");
}

/// As many communicators as the argument says in one process, all in use. Those for which the process has no
/// staging memory left are off and say so; the results of all are right; once they are gone there is room
/// again.
CASE(many) {
  const int count = std::stoi(self.argument);
  const LoadedOnehop* onehop = nullptr;
  Checked checked(self, 128 << 10);
  const Stream stream;
  std::vector<ncclComm_t> comms;
  int on = 0, off = 0;
  for (int c = 0; c < count; ++c) {
    self.step("communicator " + std::to_string(c));
    comms.push_back(self.join());
    if (onehop == nullptr) onehop = new LoadedOnehop;
    use(self, checked, comms.back(), stream, static_cast<uint32_t>(c) * 8);
    self.meet();
    if (!onehop->found()) continue;
    const onehopCommStatus status = onehop->status(comms.back());
    const std::string reason = status.reason;
    if (status.state == onehopOn) {
      ++on;
    } else {
      must(status.state == onehopOff && reason.find("256 MiB") != std::string::npos,
           "communicator " + std::to_string(c) + " is off for another reason: " + reason);
      if (off++ == 0 && self.rank == 0) self.note("off: " + reason);
    }
  }
  if (self.rank == 0) {
    self.note("with all of them: " + Held::now().text());
    self.figure("communicators on", on);
    self.figure("communicators off", off);
  }
  for (uint32_t round = 0; round < 20; ++round) {
    self.step("round " + std::to_string(round));
    for (uint32_t c = 0; c < comms.size(); ++c)
      checked.all_reduce({.count = 1 + (c * 331 + round * 77) % 16000, .seed = 100000 + round * 100 + c},
                         comms[c], self.ranks, stream);
    stream.synchronize();
  }
  self.figure("elements checked", static_cast<double>(checked.verify("many communicators")));
  self.meet();
  for (const ncclComm_t comm : comms) {
    MUST(ncclCommDestroy(comm));
    self.meet();
  }
  const ncclComm_t last = self.join();
  use(self, checked, last, stream, 1);
  checked.verify("the communicator after the many");
  if (onehop->found()) must(onehop->status(last).state == onehopOn, "no room after the many were destroyed");
  self.meet();
  MUST(ncclCommDestroy(last));
}

/// Graphs outlive their communicator, not launched again: destroyed (argument "destroy") or aborted. The next
/// communicator and the old graph's end do not disturb each other.
CASE(graph_after_comm) {
  Checked checked(self, 128 << 10);
  const Stream stream;
  ncclComm_t comm = self.join();
  use(self, checked, comm, stream, 1);
  for (uint32_t round = 0; round < 5; ++round) {
    self.step("round " + std::to_string(round));
    self.meet();
    auto graph = std::make_unique<Graph>(stream, [&] {
      for (uint32_t i = 0; i < 5; ++i)
        checked.all_reduce({.count = 2000, .seed = 10 * round + i}, comm, self.ranks, stream);
    });
    self.meet();
    for (int replay = 0; replay < 10; ++replay) graph->launch(stream);
    stream.synchronize();
    self.meet();
    const double since = now_s();
    if (self.argument == "destroy")
      MUST(ncclCommDestroy(comm));
    else
      MUST(ncclCommAbort(comm));
    self.figure("end of a communicator with a graph, s", now_s() - since);
    self.meet();
    comm = self.join();
    use(self, checked, comm, stream, 1000 + round);
    self.meet();
    graph.reset();
    self.meet();
    use(self, checked, comm, stream, 2000 + round);
  }
  checked.verify("graphs that outlive their communicator");
  self.meet();
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::test
