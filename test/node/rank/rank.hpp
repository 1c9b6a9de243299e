// What scenarios share: who this rank is, how ranks meet, and checks that end the process. An ordinary NCCL
// program; of onehop it knows only what dlopen finds (loaded.hpp).
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <map>
#include <string>

namespace onehop::node {

/// Says on standard error what is wrong, and ends the process at once: peers are ended by the test.
[[noreturn]] void fail(const std::string& what);

inline void must(bool ok, const std::string& what) {
  if (!ok) fail(what);
}
void must(cudaError_t error, const std::string& what);
void must(ncclResult_t result, const std::string& what);

/// An `if` that says which call or condition it was.
#define MUST(call) \
  ::onehop::node::must((call), std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #call)

/// One process of a job. Rank r of the processes uses device r, or the first if it sees no more.
class Rank {
 public:
  Rank(int its_rank, int its_ranks, std::string its_folder, std::string its_argument);

  const int rank, ranks;
  const std::string argument;  ///< of the scenario

  /// Counts calls that must show up in onehop's statistics, as taken or under the reason why they were
  /// passed. The test compares (job.hpp).
  void expect(const std::string& what, uint64_t calls = 1) { expected_[what] += calls; }
  void print_expected() const;

  /// Words between the processes that are not NCCL's: a file for each.
  void say(const std::string& word) const;
  void wait_for(const std::string& word) const;
  /// Waits until all ranks have said it.
  void meet(const std::string& word) const;

  /// The id that process 0 made for `name`.
  ncclUniqueId id(const std::string& name) const;
  ncclComm_t join(const std::string& name = "world", ncclConfig_t* config = nullptr) const;

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  const std::string folder_;
  std::map<std::string, uint64_t> expected_;
};

/// A named scenario; main.cpp runs the one that it is told.
struct Scenario {
  Scenario(const char* name, void (*run)(Rank&));
};
#define SCENARIO(name)                                            \
  void name(Rank&);                                               \
  const ::onehop::node::Scenario name##_scenario(#name, &(name)); \
  void name([[maybe_unused]] Rank& self)

}  // namespace onehop::node
