#include "plugin/plan.hpp"

#include <algorithm>

namespace onehop {

size_t bytes_of(nccl::DataType type) {
  switch (type) {
    case nccl::kInt8:
    case nccl::kUint8:
    case nccl::kFloat8e4m3:
    case nccl::kFloat8e5m2:
      return 1;
    case nccl::kFloat16:
    case nccl::kBfloat16:
      return 2;
    case nccl::kInt32:
    case nccl::kUint32:
    case nccl::kFloat32:
      return 4;
    case nccl::kInt64:
    case nccl::kUint64:
    case nccl::kFloat64:
      return 8;
  }
  return 0;
}

std::optional<Element> element_of(nccl::DataType type) {
  static_assert(static_cast<int>(Element::kInt8) == nccl::kInt8 &&
                static_cast<int>(Element::kUint64) == nccl::kUint64 &&
                static_cast<int>(Element::kFloat16) == nccl::kFloat16 &&
                static_cast<int>(Element::kBfloat16) == nccl::kBfloat16 &&
                static_cast<int>(Element::kFloat8e5m2) == nccl::kFloat8e5m2);
  if (bytes_of(type) == 0) return std::nullopt;
  return static_cast<Element>(type);
}

std::optional<Reduction> reduction_of(nccl::RedOp op) {
  static_assert(
      static_cast<int>(Reduction::kSum) == nccl::kSum && static_cast<int>(Reduction::kProd) == nccl::kProd &&
      static_cast<int>(Reduction::kMax) == nccl::kMax && static_cast<int>(Reduction::kMin) == nccl::kMin &&
      static_cast<int>(Reduction::kAvg) == nccl::kAvg);
  if (op < nccl::kSum || op > nccl::kAvg) return std::nullopt;
  return static_cast<Reduction>(op);
}

Plan make_plan(const Settings& settings, uint32_t ranks) {
  // Bytes of inbox for each pack of payload that one source may send.
  const uint64_t per_pack = InboxLayout{ranks, 1}.bytes();
  const uint64_t fits = (kStagingBudget - sizeof(State)) / per_pack * sizeof(Pack);
  return {std::min(settings.max_bytes, fits), false};
}

uint32_t capacity_for(const Plan& plan) {
  return static_cast<uint32_t>((plan.max_bytes + sizeof(Pack) - 1) / sizeof(Pack));
}

Decision decide(const SharedFacts& call, const Plan& plan) {
  if (call.count == 0) return {{}, Pass::kEmpty};
  const std::optional<Element> element = element_of(call.type);
  if (!element) return {{}, Pass::kType};
  const bool fp8 = *element == Element::kFloat8e4m3 || *element == Element::kFloat8e5m2;
  if (fp8 && !plan.takes_fp8) return {{}, Pass::kType};
  const std::optional<Reduction> reduction = reduction_of(call.op);
  if (!reduction) return {{}, Pass::kOperator};
  if (call.count > plan.max_bytes / element_size(*element)) return {{}, Pass::kSize};
  return {Served{*element, *reduction}, {}};
}

bool starts_set_up(const SharedFacts& call) {
  constexpr size_t kLargestTrigger = 8 << 20;
  return call.count > 0 && call.count <= kLargestTrigger;
}

}  // namespace onehop
