// The calls of the soak, drawn at random.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "test/gpu/life/soak_ranks.hpp"

namespace onehop::test {

#ifdef ONEHOP_ON_STANDIN  // whose kernels are slow
inline constexpr size_t kMostElements = 64 << 10;
#else
inline constexpr size_t kMostElements = 2 << 20;
#endif
inline constexpr size_t kMostPassed = 512 << 10, kSmall = 16 << 10;  ///< bytes

/// A call on the communicator of `slot`, of at most `most_bytes`. What all ranks must agree on comes from
/// `common`, whose state is the same on all of them; what each may choose, from its `own`. Calls of up to
/// `max_bytes` are taken.
inline Call draw_call(std::mt19937& common, std::mt19937& own, const Soak::Slot& slot, size_t max_bytes,
                      size_t most_bytes) {
  Call call;
  call.type = static_cast<ncclDataType_t>(common() % 12);
  call.op = static_cast<ncclRedOp_t>(common() % 5);
  call.random = common() % 4 == 0;
  const bool averages = (slot.ranks & (slot.ranks - 1)) == 0 || call.random || call.type < ncclFloat16;
  if (call.op == ncclAvg && !averages) call.op = ncclSum;
  const size_t size = size_of(static_cast<uint32_t>(call.type));
  const size_t taken = slot.on ? max_bytes : 0, passed = slot.may_pass() ? kMostPassed : 0;
  const size_t most = std::min({std::max(taken, passed), most_bytes, kMostElements * size}) / size;
  // Small ones mostly; edges of what is taken and of the methods' ranges; some large ones.
  const uint32_t kind = common() % 16;
  const size_t pick = common(), edges[] = {taken, 8 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10};
  if (kind < 9)
    call.count = 1 + pick % 2048;
  else if (kind < 12)
    call.count = edges[pick % std::size(edges)] / size + (pick >> 8) % 3 - 1;
  else if (kind < 15)
    call.count = 1 + pick % (kSmall * 4 / size);
  else
    call.count = 1 + pick % most;
  call.count = std::clamp<size_t>(call.count, 1, most);
  call.in_place = own() % 3 == 0;
  call.offset = own() % 3 == 0 ? own() % 8 : 0;
  if (own() % 8 == 0) call.delay_ns = own() % 50'000;
  return call;
}

/// The calls of a graph in words, for who watches it: call c is between steps 2c + 1 and 2c + 2.
inline std::string text_of(const std::vector<Call>& calls) {
  std::string text;
  for (const Call& call : calls)
    text += (text.empty() ? "" : ", ") +
            std::to_string(call.count * size_of(static_cast<uint32_t>(call.type))) + " bytes of type " +
            std::to_string(call.type);
  return text;
}

}  // namespace onehop::test
