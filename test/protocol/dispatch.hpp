// The protocol with given rules, for an element type known at run time only.
#pragma once

#include <type_traits>

#include "kernels/protocol/one_shot.hpp"

namespace onehop::test {

/// `Flags` replaces FlagWords in tests that break it.
template <class Rules = ProvenRules, class Flags = FlagWords, uint32_t kBound = kMaxRanks>
struct Variant {
  static constexpr uint32_t kSlots = Rules::kSlots;

  template <class Memory, class Group>
  static void run(Element element, Memory& memory, const Group& group, const CommView& comm,
                  const Operation& operation) {
    switch (element) {
      case Element::kFloat32:
        return run_as<Float32>(memory, group, comm, operation);
      case Element::kFloat16:
        return run_as<Float16>(memory, group, comm, operation);
      case Element::kBfloat16:
        return run_as<Bfloat16>(memory, group, comm, operation);
      case Element::kFloat64:
        return run_as<Float64>(memory, group, comm, operation);
      case Element::kInteger32:
        return run_as<Integer32>(memory, group, comm, operation);
      case Element::kInteger64:
        return run_as<Integer64>(memory, group, comm, operation);
    }
  }

 private:
  template <class E, class Memory, class Group>
  static void run_as(Memory& memory, const Group& group, const CommView& comm, const Operation& operation) {
    using Words = std::conditional_t<std::is_same_v<typename E::Words, FlagWords>, Flags, typename E::Words>;
    one_shot<E, kBound, Words, Rules>(memory, group, comm, operation);
  }
};

using Proven = Variant<>;

}  // namespace onehop::test
