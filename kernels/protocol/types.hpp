// What a method is told of element type and operator: all of it when it is compiled (Typed), or only the kind
// of words, and the rest at run time (Untyped). The sums of the types that models are made of are worth
// kernels of their own; 60 combinations times every method are not.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/dispatch.hpp"
#include "kernels/protocol/payload.hpp"
#include "kernels/protocol/reduction.hpp"

namespace onehop {

template <class Element, class Operator>
struct Typed {
  using Words = typename Element::Words;
  using Reduction = PackReduction<Element, Operator>;

  ONEHOP_HD static Payload<Element::kBytes, const unsigned char> input(const Operation& operation) {
    return {static_cast<const unsigned char*>(operation.send), static_cast<uint32_t>(operation.count)};
  }
  ONEHOP_HD static Payload<Element::kBytes, unsigned char> output(const Operation& operation) {
    return {static_cast<unsigned char*>(operation.receive), static_cast<uint32_t>(operation.count)};
  }
  ONEHOP_HD static Reduction reduction(const Operation&) { return {}; }
};

/// As Payload, with elements of `bytes` bytes.
template <class Byte>
class AnyPayload {
 public:
  ONEHOP_HD AnyPayload(Byte* base, uint32_t count, uint32_t bytes)
      : base_(base),
        count_(count),
        bytes_(bytes),
        lanes_(static_cast<uint32_t>(sizeof(Pack)) / bytes),
        wide_(reinterpret_cast<uintptr_t>(base) % sizeof(Pack) == 0) {}

  ONEHOP_HD uint32_t packs() const { return (count_ + lanes_ - 1) / lanes_; }

  ONEHOP_HD Pack load(uint32_t index) const {
    const uint32_t first = index * lanes_;
    if (wide_ && first + lanes_ <= count_) return reinterpret_cast<const Pack*>(base_)[index];
    switch (bytes_) {
      case 1:
        return load_narrow<1>(base_, first, count_);
      case 2:
        return load_narrow<2>(base_, first, count_);
      case 4:
        return load_narrow<4>(base_, first, count_);
      default:
        return load_narrow<8>(base_, first, count_);
    }
  }

  ONEHOP_HD void store(uint32_t index, const Pack& pack) const {
    const uint32_t first = index * lanes_;
    if (wide_ && first + lanes_ <= count_) {
      reinterpret_cast<Pack*>(base_)[index] = pack;
      return;
    }
    switch (bytes_) {
      case 1:
        return store_narrow<1>(base_, first, count_, pack);
      case 2:
        return store_narrow<2>(base_, first, count_, pack);
      case 4:
        return store_narrow<4>(base_, first, count_, pack);
      default:
        return store_narrow<8>(base_, first, count_, pack);
    }
  }

 private:
  Byte* base_;
  uint32_t count_, bytes_, lanes_;
  bool wide_;
};

/// The sum so far of one pack, unrounded.
struct WideSum {
  Pack pack[kMaxWidePacks];
};

namespace any {

/// What is done to a WideSum.
enum class Step { kStart, kAdd, kResult };

template <class Words>
struct Visitor {
  Step step;
  WideSum& sum;
  const Pack& pack;
  uint32_t ranks;

  template <class Type, class Operator>
  ONEHOP_HD Pack operator()() const {
    if constexpr (std::is_same_v<typename Type::Words, Words>) {
      PackReduction<Type, Operator> reduction;
      if (step == Step::kStart)
        reduction.start(pack);
      else
        for (uint32_t w = 0; w < reduction.wide_packs(); ++w) reduction.set_wide(w, sum.pack[w]);
      if (step == Step::kAdd) reduction.add(pack);
      if (step == Step::kResult) return reduction.result(ranks);
      for (uint32_t w = 0; w < reduction.wide_packs(); ++w) sum.pack[w] = reduction.wide(w);
    }
    return {};
  }
};

/// Out of line: one copy serves all methods.
template <class Words>
ONEHOP_HD_COLD Pack reduce(Element element, Reduction operation, Step step, WideSum& sum, const Pack& pack,
                           uint32_t ranks) {
  return dispatch(element, operation, Visitor<Words>{step, sum, pack, ranks});
}

}  // namespace any

/// As PackReduction.
template <class Words>
class AnyReduction {
 public:
  ONEHOP_HD AnyReduction(Element element, Reduction operation) : element_(element), operation_(operation) {}

  ONEHOP_HD void start(const Pack& pack) {
    any::reduce<Words>(element_, operation_, any::Step::kStart, sum_, pack, 0);
  }
  ONEHOP_HD void add(const Pack& pack) {
    any::reduce<Words>(element_, operation_, any::Step::kAdd, sum_, pack, 0);
  }
  ONEHOP_HD Pack result(uint32_t ranks) {
    return any::reduce<Words>(element_, operation_, any::Step::kResult, sum_, {}, ranks);
  }

  ONEHOP_HD uint32_t wide_packs() const { return onehop::wide_packs(element_); }
  ONEHOP_HD Pack wide(uint32_t w) const { return sum_.pack[w]; }
  ONEHOP_HD void set_wide(uint32_t w, const Pack& pack) { sum_.pack[w] = pack; }

 private:
  Element element_;
  Reduction operation_;
  WideSum sum_;
};

template <class WordsOfTypes>
struct Untyped {
  using Words = WordsOfTypes;

  ONEHOP_HD static AnyPayload<const unsigned char> input(const Operation& operation) {
    return {static_cast<const unsigned char*>(operation.send), static_cast<uint32_t>(operation.count),
            static_cast<uint32_t>(element_size(operation.element))};
  }
  ONEHOP_HD static AnyPayload<unsigned char> output(const Operation& operation) {
    return {static_cast<unsigned char*>(operation.receive), static_cast<uint32_t>(operation.count),
            static_cast<uint32_t>(element_size(operation.element))};
  }
  ONEHOP_HD static AnyReduction<Words> reduction(const Operation& operation) {
    return {operation.element, operation.reduction};
  }
};

}  // namespace onehop
