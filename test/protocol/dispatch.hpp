// The protocol with given rules, for an operation known at run time only.
#pragma once

#include <cstdlib>
#include <type_traits>

#include "kernels/protocol/dispatch.hpp"
#include "kernels/protocol/one_shot.hpp"

namespace onehop::test {

/// `Flags` replaces FlagWords in tests that break it. Broken variants are made for sums only.
template <class Rules = ProvenRules, class Flags = FlagWords, uint32_t kBound = kMaxRanks>
struct Variant {
  static constexpr uint32_t kSlots = Rules::kSlots;
  static constexpr bool kSumsOnly = !std::is_same_v<Rules, ProvenRules> || !std::is_same_v<Flags, FlagWords>;

  template <class Memory, class Group>
  static void run(Memory& memory, const Group& group, const CommView& comm, const Operation& operation) {
    dispatch(operation.element, operation.reduction, [&]<class Type, class Operator>() {
      using Own = typename Type::Words;
      using Words = std::conditional_t<std::is_same_v<Own, FlagWords>, Flags, Own>;
      if constexpr (kSumsOnly && !std::is_same_v<Operator, Sum>)
        std::abort();
      else
        one_shot<Type, Operator, kBound, Words, Rules>(memory, group, comm, operation);
    });
  }
};

using Proven = Variant<>;

}  // namespace onehop::test
