// From the run-time description of an operation to the types that the protocol is instantiated with.
#pragma once

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/element.hpp"
#include "kernels/protocol/float8.hpp"
#include "kernels/protocol/reduction.hpp"

namespace onehop {

template <class Type, class Visitor>
ONEHOP_HD auto with_operator(Reduction reduction, Visitor&& visitor) {
  switch (reduction) {
    case Reduction::kSum:
      return visitor.template operator()<Type, Sum>();
    case Reduction::kProd:
      return visitor.template operator()<Type, Prod>();
    case Reduction::kMax:
      return visitor.template operator()<Type, Max>();
    case Reduction::kMin:
      return visitor.template operator()<Type, Min>();
    case Reduction::kAvg:
      return visitor.template operator()<Type, Avg>();
  }
  __builtin_unreachable();
}

/// Signed integers: sums and products have the bits of the unsigned type's, so one instantiation serves both.
template <class Signed, class Unsigned, class Visitor>
ONEHOP_HD auto with_signed_operator(Reduction reduction, Visitor&& visitor) {
  switch (reduction) {
    case Reduction::kSum:
      return visitor.template operator()<Unsigned, Sum>();
    case Reduction::kProd:
      return visitor.template operator()<Unsigned, Prod>();
    case Reduction::kMax:
      return visitor.template operator()<Signed, Max>();
    case Reduction::kMin:
      return visitor.template operator()<Signed, Min>();
    case Reduction::kAvg:
      return visitor.template operator()<Signed, Avg>();
  }
  __builtin_unreachable();
}

/// Calls visitor.operator()<ElementType, Operator>() with the types of this operation.
template <class Visitor>
ONEHOP_HD auto dispatch(Element element, Reduction reduction, Visitor&& visitor) {
  switch (element) {
    case Element::kInt8:
      return with_signed_operator<Int8, Uint8>(reduction, visitor);
    case Element::kUint8:
      return with_operator<Uint8>(reduction, visitor);
    case Element::kInt32:
      return with_signed_operator<Int32, Uint32>(reduction, visitor);
    case Element::kUint32:
      return with_operator<Uint32>(reduction, visitor);
    case Element::kInt64:
      return with_signed_operator<Int64, Uint64>(reduction, visitor);
    case Element::kUint64:
      return with_operator<Uint64>(reduction, visitor);
    case Element::kFloat16:
      return with_operator<Float16>(reduction, visitor);
    case Element::kFloat32:
      return with_operator<Float32>(reduction, visitor);
    case Element::kFloat64:
      return with_operator<Float64>(reduction, visitor);
    case Element::kBfloat16:
      return with_operator<Bfloat16>(reduction, visitor);
    case Element::kFloat8e4m3:
      return with_operator<Float8e4m3>(reduction, visitor);
    case Element::kFloat8e5m2:
      return with_operator<Float8e5m2>(reduction, visitor);
  }
  __builtin_unreachable();
}

}  // namespace onehop
