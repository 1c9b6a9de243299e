// The functions of libnccl that onehop takes over, each with a call that works without a GPU: no
// communicator.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/interpose/interpose.hpp"

namespace onehop::interpose::test {

inline constexpr std::array kNcclFunctions = {
    "ncclAllReduce",  "ncclGroupStart",  "ncclGroupEnd",  "ncclGroupSimulateEnd",
    "ncclAllGather",  "ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize",
    "ncclCommRevoke", "ncclCommShrink",  "ncclCommSplit", "ncclCommGetAsyncError",
};
inline constexpr size_t kNcclFunctionCount = kNcclFunctions.size();

/// As many integer arguments as any of them takes; a function ignores those that it does not have.
using Word = intptr_t;
using NcclFunction = int (*)(Word, Word, Word, Word, Word, Word, Word, Word);

inline int call(size_t index, void* entry) {
  // Stands in for objects that a function looks at before it checks them: each of its words points to itself.
  static std::array<Word, 1 << 14> self;
  const auto object = reinterpret_cast<Word>(self.data());
  self.fill(object);
  const auto function = reinterpret_cast<NcclFunction>(entry);
  const std::string_view name = kNcclFunctions[index];
  if (name == "ncclCommShrink") return function(object, 0, 0, object, 0, 0, 0, 0);
  if (name == "ncclCommSplit") return function(0, 0, 0, object, 0, 0, 0, 0);
  if (name == "ncclCommGetAsyncError") return function(0, object, 0, 0, 0, 0, 0, 0);
  return function(0, 0, 0, 0, 0, 0, 0, 0);
}

/// Hooks that count and pass the call on.
class CountingHooks {
 public:
  static inline std::array<void*, kNcclFunctionCount> originals{};
  /// Shared with forked children.
  static inline auto& calls = *static_cast<std::array<int, kNcclFunctionCount>*>(
      mmap(nullptr, sizeof(std::array<int, kNcclFunctionCount>), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));

  static std::vector<Hook> all() { return make(std::make_index_sequence<kNcclFunctionCount>{}); }

 private:
  template <size_t index>
  static int count(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h) {
    ++calls[index];
    return reinterpret_cast<NcclFunction>(originals[index])(a, b, c, d, e, f, g, h);
  }
  template <size_t... indices>
  static std::vector<Hook> make(std::index_sequence<indices...>) {
    return {Hook{kNcclFunctions[indices], reinterpret_cast<void*>(&count<indices>), &originals[indices]}...};
  }
};

/// Calls function `index` at `entry` without a communicator, in a child process: releases differ in whether
/// they check an argument or fault on it. Returns the function's result, or 1000 + the signal that it died
/// of.
inline int call_without_comm(size_t index, void* entry) {
  const pid_t child = fork();
  if (child == 0) _exit(call(index, entry));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace onehop::interpose::test
