#include "tools/onehop/bench/elements.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace onehop::bench {
namespace {

constexpr ElementType kTypes[] = {
    {"bfloat16", ncclBfloat16, 2}, {"float16", ncclFloat16, 2}, {"float32", ncclFloat32, 4},
    {"float64", ncclFloat64, 8},   {"int8", ncclInt8, 1},       {"int32", ncclInt32, 4},
    {"int64", ncclInt64, 8},
};

template <class T>
void append(std::vector<unsigned char>& bytes, T value) {
  const size_t end = bytes.size();
  bytes.resize(end + sizeof(value));
  std::memcpy(bytes.data() + end, &value, sizeof(value));
}

/// The bits of a whole number below 256: exact in the eight bits of significand that bfloat16 has.
uint16_t bfloat16(unsigned value) {
  const auto wide = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &wide, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

uint16_t float16(unsigned value) {
  if (value == 0) return 0;
  unsigned exponent = 0;
  while (value >> (exponent + 1) != 0) ++exponent;
  const unsigned fraction = (value << 10 >> exponent) & 0x3FF;
  return static_cast<uint16_t>((exponent + 15) << 10 | fraction);
}

void encode(std::vector<unsigned char>& bytes, const ElementType& type, unsigned value) {
  switch (type.nccl) {
    case ncclBfloat16:
      return append(bytes, bfloat16(value));
    case ncclFloat16:
      return append(bytes, float16(value));
    case ncclFloat32:
      return append(bytes, static_cast<float>(value));
    case ncclFloat64:
      return append(bytes, static_cast<double>(value));
    case ncclInt8:
      return append(bytes, static_cast<uint8_t>(value));
    case ncclInt32:
      return append(bytes, static_cast<uint32_t>(value));
    default:
      return append(bytes, static_cast<uint64_t>(value));
  }
}

unsigned value_of(size_t place, size_t rank, size_t call, size_t turn) {
  return static_cast<unsigned>((place * 3 + rank * 7 + call * 11 + turn * 5) % 16);
}

}  // namespace

std::span<const ElementType> element_types() {
  return kTypes;
}

const ElementType* find_type(const std::string& name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const ElementType& t) { return t.name == name; });
  return found != std::end(kTypes) ? found : nullptr;
}

std::vector<unsigned char> contents(const ElementType& type, size_t rank, size_t call, size_t turn) {
  std::vector<unsigned char> period;
  for (size_t place = 0; place < kPeriod; ++place) encode(period, type, value_of(place, rank, call, turn));
  return period;
}

std::vector<unsigned char> sums(const ElementType& type, size_t ranks, size_t call, size_t turn) {
  std::vector<unsigned char> period;
  for (size_t place = 0; place < kPeriod; ++place) {
    unsigned sum = 0;
    for (size_t rank = 0; rank < ranks; ++rank) sum += value_of(place, rank, call, turn);
    encode(period, type, sum);
  }
  return period;
}

void repeat(std::span<const unsigned char> period, unsigned char* data, size_t bytes) {
  size_t done = std::min(period.size(), bytes);
  std::memcpy(data, period.data(), done);
  // What is there already is whole periods, until the last step.
  for (; done < bytes; done += std::min(done, bytes - done))
    std::memcpy(data + done, data, std::min(done, bytes - done));
}

size_t count_wrong(std::span<const unsigned char> period, const unsigned char* data, size_t bytes,
                   size_t size) {
  size_t wrong = 0;
  for (size_t start = 0; start < bytes; start += period.size()) {
    const size_t length = std::min(period.size(), bytes - start);
    if (std::memcmp(data + start, period.data(), length) == 0) continue;
    for (size_t at = 0; at < length; at += size)
      wrong += std::memcmp(data + start + at, period.data() + at, size) != 0 ? 1 : 0;
  }
  return wrong;
}

}  // namespace onehop::bench
