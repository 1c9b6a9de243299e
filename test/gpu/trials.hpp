// Operations by the thousand, prepared and checked on the GPU: inputs are a function of trial, rank and
// index, so that every rank can work out by itself what it must have received, and nothing is copied or
// waited for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/operation.hpp"

namespace onehop::test {

/// One operation, and where its data lies in the memory of each rank: the same bytes of `send` and `receive`.
struct Trial {
  uint32_t at = 0;             ///< bytes in front of it, a multiple of 16
  uint32_t elements = 0;       ///< of memory: the data, and poison on both sides of it
  uint32_t count = 0;          ///< of data
  uint32_t send_first = 0;     ///< elements of poison in front of the input ...
  uint32_t receive_first = 0;  ///< ... and of the result
  uint32_t in_place = 0;       ///< bit r: rank r sends from where it receives
  uint32_t seed = 0;
  bool exact = false;  ///< inputs that no order of additions rounds; else any, compared in rank order
};

/// What a rank found first, and how often.
struct Fault {
  enum Where : uint32_t { kResult, kAroundResult, kSend };
  uint32_t wrong = 0;
  uint32_t trial = 0, index = 0, where = kResult;
  uint64_t got = 0, want = 0;
};

/// Trials of one type and operator on one rank.
struct TrialBatch {
  Element element = Element::kFloat32;
  Reduction reduction = Reduction::kSum;
  uint32_t rank = 0, ranks = 0;
  uint32_t first = 0, count = 0;  ///< of `trials`
  const Trial* trials = nullptr;
  unsigned char *send = nullptr, *receive = nullptr;
  uint64_t* digests = nullptr;  ///< of each trial's result; zero at first
  Fault* fault = nullptr;
};

/// Inputs into `send`, or into `receive` for what is in place; poison everywhere else.
cudaError_t prepare(const TrialBatch&, cudaStream_t);
/// Results against the reference (two NaNs pass for equal here, but not in the digests), poison and inputs
/// against what they were.
cudaError_t check(const TrialBatch&, cudaStream_t);

}  // namespace onehop::test
