// The protocol with given rules, for an operation known at run time only.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "kernels/protocol/all_reduce.hpp"

namespace onehop::test {

/// What a test can break: a broken design derives from this one and hides a part of it.
struct ProvenDesign {
  using Rules = ProvenRules;
  template <class Proven>
  using Words = Proven;  ///< the words to be used instead of the proven ones
  template <class Words>
  using PullRoute = Pull<Words>;
  static constexpr bool has(Method) { return true; }  ///< broken designs are not compiled for every method
};

template <class Design>
inline constexpr bool kIsProven = std::is_same_v<Design, ProvenDesign>;

template <class Design, Method kMethod, class Types, uint32_t kBound, class Memory, class Group>
void run_method(Memory& memory, const Group& group, const CommView& comm, const Operation& operation) {
  using Words = typename Design::template Words<typename Types::Words>;
  using Rules = typename Design::Rules;
  if constexpr (!kIsProven<Design> && kMethod == Method::kOneShotPull)
    one_shot<Design::template PullRoute, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (!kIsProven<Design> && kMethod == Method::kTwoShotPull)
    two_shot<Design::template PullRoute, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else
    all_reduce<kMethod, Types, kBound, Words, Rules>(memory, group, comm, operation);
}

/// Type and operator are looked at when it runs, as in the kernel that serves most of them.
template <class Design>
struct Variant {
  using Rules = typename Design::Rules;

  template <class Memory, class Group>
  static void run(Memory& memory, const Group& group, const CommView& comm, const Operation& operation,
                  bool /*typed*/ = false) {
    with_method(operation.method, [&]<Method kMethod>() {
      with_words(operation.element, [&]<class Words>() {
        if constexpr (Design::has(kMethod))
          run_method<Design, kMethod, Untyped<Words>, kMaxHopRanks>(memory, group, comm, operation);
        else
          std::abort();
      });
    });
  }
};

using Proven = Variant<ProvenDesign>;

/// As it is launched: sums of fp16, bf16 and fp32 have instantiations of their own, for up to 2, 4 and 8
/// ranks (of one island). A rank takes them if it is told to, so that they also meet the others.
struct Launched : Proven {
  template <class Memory, class Group>
  static void run(Memory& memory, const Group& group, const CommView& comm, const Operation& operation,
                  bool typed);

 private:
  template <class Types, class Memory, class Group>
  static void run_bounded(Memory& memory, const Group& group, const CommView& comm,
                          const Operation& operation);
};

template <class Memory, class Group>
void Launched::run(Memory& memory, const Group& group, const CommView& comm, const Operation& operation,
                   bool typed) {
  if (!typed || operation.reduction != Reduction::kSum) return Proven::run(memory, group, comm, operation);
  switch (operation.element) {
    case Element::kFloat16:
      return run_bounded<Typed<Float16, Sum>>(memory, group, comm, operation);
    case Element::kBfloat16:
      return run_bounded<Typed<Bfloat16, Sum>>(memory, group, comm, operation);
    case Element::kFloat32:
      return run_bounded<Typed<Float32, Sum>>(memory, group, comm, operation);
    default:
      return Proven::run(memory, group, comm, operation);
  }
}

template <class Types, class Memory, class Group>
void Launched::run_bounded(Memory& memory, const Group& group, const CommView& comm,
                           const Operation& operation) {
  uint32_t sources = comm.ranks;
  if (operation.method == Method::kIslands) {
    sources = 0;
    for (uint32_t i = 0; i < comm.islands.count; ++i) sources = std::max(sources, comm.islands.size(i));
  }
  with_method(operation.method, [&]<Method kMethod>() {
    if (sources <= 2)
      all_reduce<kMethod, Types, 2>(memory, group, comm, operation);
    else if (sources <= 4)
      all_reduce<kMethod, Types, 4>(memory, group, comm, operation);
    else
      all_reduce<kMethod, Types, kMaxHopRanks>(memory, group, comm, operation);
  });
}

}  // namespace onehop::test
