// A model checker for the protocol: a few ranks of one thread run a few operations, in every order that the
// memory between them allows. The kernels are the protocol's own templates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/protocol/dispatch.hpp"
#include "test/protocol/model_memory.hpp"

namespace onehop::test {

/// An operation on fp32 (sentinel words) or uint32 (flag words).
struct ModelStep {
  Method method = Method::kOneShot;
  WordKind words = WordKind::kSentinel;
  uint32_t packs = 1;
};

/// A design of the protocol, as the checker calls it.
struct ModelDesign {
  void (*run)(ReplayMemory& memory, const CommView& comm, const Operation& operation);
  /// Whether half i of a line would be taken for arrived, if it is not of change words.
  bool (*accepts)(WordKind words, uint32_t i, uint64_t half, uint32_t epoch);
};

/// How fine the steps are. Each finds what the coarser ones find: model.cpp says why, and the tests compare
/// them.
enum class Grain {
  kCoarse,    ///< only what can matter is a step of its own
  kLandings,  ///< every landing of a half
  kHalves     ///< every landing and every read of a half
};

struct ModelOptions {
  uint32_t ranks = 2;
  Islands islands;
  std::vector<ModelStep> steps;
  Turn first{0xFFFFFFFE, 1, 0, 0};  ///< the epoch wraps on the way
  uint32_t fresh_shadow = ~0u;      ///< what each word of the shadows holds at first
  bool fresh = false;               ///< flag words are 0 at first, else older than any epoch that comes
  Grain grain = Grain::kCoarse;
  const Fold* fold = nullptr;
  uint64_t most_states = 4'000'000;
};

struct Verdict {
  uint64_t states = 0;
  uint64_t transitions = 0;
  std::string violation;           ///< empty: none
  std::vector<std::string> trace;  ///< what led to it

  bool holds() const { return violation.empty(); }
  std::string text() const;
};

/// Whether in every order each operation ends on each rank, with the right result, and with nothing under way
/// that the proof says has landed.
Verdict check(const ModelDesign& design, const ModelOptions& options);

template <class Design>
ModelDesign model_of() {
  constexpr uint32_t kBound = 4;
  return {
      [](ReplayMemory& memory, const CommView& comm, const Operation& operation) {
        with_method(operation.method, [&]<Method kMethod>() {
          if constexpr (!Design::has(kMethod))
            std::abort();
          else if (operation.element == Element::kFloat32)
            run_method<Design, kMethod, Typed<Float32, Sum>, kBound>(memory, SingleThread{}, comm, operation);
          else
            run_method<Design, kMethod, Typed<Uint32, Sum>, kBound>(memory, SingleThread{}, comm, operation);
        });
      },
      [](WordKind words, uint32_t i, uint64_t half, uint32_t epoch) {
        const auto accepts = [&]<class Words>() {
          typename Words::Line line = Words::encode(Pack{}, epoch);
          line.pack[i / 2].word[i % 2 * 2] = static_cast<uint32_t>(half);
          line.pack[i / 2].word[i % 2 * 2 + 1] = static_cast<uint32_t>(half >> 32);
          return arrived<Words>(line, epoch);
        };
        return words == WordKind::kSentinel
                   ? accepts.template operator()<typename Design::template Words<SentinelWords>>()
                   : accepts.template operator()<typename Design::template Words<FlagWords>>();
      }};
}

}  // namespace onehop::test
