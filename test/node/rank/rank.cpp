#include "test/node/rank/rank.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

namespace onehop::node {

void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::fflush(nullptr);
  _exit(1);
}

void must(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) fail(what + ": " + cudaGetErrorString(error));
}

void must(ncclResult_t result, const std::string& what) {
  if (result != ncclSuccess) fail(what + ": " + ncclGetErrorString(result));
}

Rank::Rank(int its_rank, int its_ranks, std::string its_folder, std::string its_argument)
    : rank(its_rank), ranks(its_ranks), argument(std::move(its_argument)), folder_(std::move(its_folder)) {}

void Rank::print_expected() const {
  std::printf("expected");
  for (const auto& [what, calls] : expected_)
    std::printf(" %s=%llu", what.c_str(), static_cast<unsigned long long>(calls));
  std::printf("\n");
}

void Rank::say(const std::string& word) const {
  std::ofstream(path(word)).flush();
}

void Rank::wait_for(const std::string& word) const {
  while (access(path(word).c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Rank::meet(const std::string& word) const {
  say(word + "." + std::to_string(rank));
  for (int r = 0; r < ranks; ++r) wait_for(word + "." + std::to_string(r));
}

ncclUniqueId Rank::id(const std::string& name) const {
  ncclUniqueId id;
  if (rank == 0) {
    MUST(ncclGetUniqueId(&id));
    std::ofstream(path(name + ".id"), std::ios::binary).write(id.internal, sizeof id.internal);
    say(name + ".id.there");
    return id;
  }
  wait_for(name + ".id.there");
  std::ifstream(path(name + ".id"), std::ios::binary).read(id.internal, sizeof id.internal);
  return id;
}

ncclComm_t Rank::join(const std::string& name, ncclConfig_t* config) const {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, ranks, id(name), rank, config);
  if (config == nullptr || result != ncclInProgress) MUST(result);
  return comm;
}

}  // namespace onehop::node
