// The user's buffers of one rank: filled before each operation, poisoned where the result will be, and
// guarded on both sides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/operation.hpp"
#include "test/protocol/script.hpp"

namespace onehop::test {

class Buffers {
 public:
  /// Large enough for each step.
  explicit Buffers(const Script& script);

  Operation prepare(const Step& step, const Part& part);

  /// Keeps the result, and reports bytes that the operation should not have touched.
  void finish(const Step& step, const Part& part, uint32_t operation, std::vector<std::string>& problems);

  const std::vector<std::vector<unsigned char>>& results() const { return results_; }

 private:
  struct Block {
    std::vector<unsigned char> storage;
    unsigned char* base = nullptr;  ///< aligned to 16, kGuard bytes before the unshifted buffer
  };
  Block make_block() const;

  size_t size_ = 0;
  Block send_;
  Block receive_;
  std::vector<std::vector<unsigned char>> results_;  ///< by operation
};

/// Every finished operation: the result is the reference's, and has the same bits on all ranks, those of a
/// NaN included where ranks run the same instantiation.
void compare_results(const Script& script, const std::vector<const Buffers*>& ranks,
                     std::vector<std::string>& problems);

}  // namespace onehop::test
