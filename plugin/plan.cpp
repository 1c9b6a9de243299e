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
  switch (type) {
    case nccl::kFloat32:
      return Element::kFloat32;
    case nccl::kFloat16:
      return Element::kFloat16;
    case nccl::kBfloat16:
      return Element::kBfloat16;
    case nccl::kFloat64:
      return Element::kFloat64;
    case nccl::kInt32:
    case nccl::kUint32:
      return Element::kInteger32;
    case nccl::kInt64:
    case nccl::kUint64:
      return Element::kInteger64;
    case nccl::kInt8:
    case nccl::kUint8:
    case nccl::kFloat8e4m3:
    case nccl::kFloat8e5m2:
      return std::nullopt;
  }
  return std::nullopt;
}

Plan make_plan(const Settings& settings, uint32_t ranks) {
  // Bytes of inbox for each pack of payload that one source may send.
  const uint64_t per_pack = InboxLayout{ranks, 1}.bytes();
  const uint64_t fits = (kStagingBudget - sizeof(State)) / per_pack * sizeof(Pack);
  return {std::min(settings.max_bytes, fits)};
}

uint32_t capacity_for(const Plan& plan) {
  return static_cast<uint32_t>((plan.max_bytes + sizeof(Pack) - 1) / sizeof(Pack));
}

Decision decide(const SharedFacts& call, const Plan& plan) {
  if (call.count == 0) return {{}, Pass::kEmpty};
  const std::optional<Element> element = element_of(call.type);
  if (!element) return {{}, Pass::kType};
  if (call.op != nccl::kSum) return {{}, Pass::kOperator};
  if (call.count > plan.max_bytes / element_size(*element)) return {{}, Pass::kSize};
  return {element, {}};
}

bool starts_set_up(const SharedFacts& call) {
  constexpr size_t kLargestTrigger = 8 << 20;
  return call.count > 0 && call.count <= kLargestTrigger;
}

}  // namespace onehop
