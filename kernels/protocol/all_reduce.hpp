// Every method, by name.
#pragma once

#include "kernels/protocol/islands.hpp"
#include "kernels/protocol/one_shot.hpp"
#include "kernels/protocol/pull.hpp"
#include "kernels/protocol/push.hpp"
#include "kernels/protocol/staged.hpp"
#include "kernels/protocol/two_shot.hpp"
#include "kernels/protocol/types.hpp"

namespace onehop {

/// Runs one all-reduce; called by every thread of the group. kBound: at least the number of ranks, for
/// islands that of the largest island. `comm`: a HopView, for islands a CommView. Leaves early, with the
/// result undefined, only when the communicator has failed.
template <Method kMethod, class Types, uint32_t kBound, class Words = typename Types::Words,
          class Rules = ProvenRules, class View, Memory Mem, ThreadGroup Group>
ONEHOP_HD void all_reduce(Mem& memory, const Group& group, const View& comm, const Operation& operation) {
  if constexpr (kMethod == Method::kOneShot)
    one_shot<Push, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (kMethod == Method::kTwoShot)
    two_shot<Push, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (kMethod == Method::kOneShotStaged)
    one_shot_staged<Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (kMethod == Method::kTwoShotStaged)
    two_shot_staged<Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (kMethod == Method::kOneShotPull)
    one_shot<Pull, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else if constexpr (kMethod == Method::kTwoShotPull)
    two_shot<Pull, Types, kBound, Words, Rules>(memory, group, comm, operation);
  else
    island_reduce<Types, kBound, Words, Rules>(memory, group, comm, operation);
}

/// Calls visitor.operator()<kMethod>().
template <class Visitor>
ONEHOP_HD void with_method(Method method, Visitor&& visitor) {
  switch (method) {
    case Method::kOneShot:
      return visitor.template operator()<Method::kOneShot>();
    case Method::kTwoShot:
      return visitor.template operator()<Method::kTwoShot>();
    case Method::kOneShotStaged:
      return visitor.template operator()<Method::kOneShotStaged>();
    case Method::kTwoShotStaged:
      return visitor.template operator()<Method::kTwoShotStaged>();
    case Method::kOneShotPull:
      return visitor.template operator()<Method::kOneShotPull>();
    case Method::kTwoShotPull:
      return visitor.template operator()<Method::kTwoShotPull>();
    case Method::kIslands:
      return visitor.template operator()<Method::kIslands>();
  }
}

/// Calls visitor.operator()<Words>() with the words that carry elements of this type.
template <class Visitor>
void with_words(Element element, Visitor&& visitor) {
  if (word_kind(element) == WordKind::kFlag) return visitor.template operator()<FlagWords>();
  if (element == Element::kFloat8e4m3) return visitor.template operator()<SentinelWordsOfE4m3>();
  return visitor.template operator()<SentinelWords>();
}

}  // namespace onehop
