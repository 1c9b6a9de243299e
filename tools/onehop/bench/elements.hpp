// Element types, and contents whose sums are exact in all of them.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace onehop::bench {

struct ElementType {
  const char* name;
  ncclDataType_t nccl;
  size_t size;
};

std::span<const ElementType> element_types();
/// Null: there is none of this name.
const ElementType* find_type(const std::string& name);

/// Contents repeat after so many elements.
inline constexpr size_t kPeriod = 16;

/// One period of what `rank` sends in call `call` of a turn: whole numbers below 16, so that the sum over 16
/// ranks is exact in every type (int8 wraps), different with rank, call, turn and place.
std::vector<unsigned char> contents(const ElementType& type, size_t rank, size_t call, size_t turn);
/// One period of the sum over all ranks.
std::vector<unsigned char> sums(const ElementType& type, size_t ranks, size_t call, size_t turn);

/// Fills `bytes` at `data` with a period over and over.
void repeat(std::span<const unsigned char> period, unsigned char* data, size_t bytes);
/// Elements at `data` that are not those of the period repeated.
size_t count_wrong(std::span<const unsigned char> period, const unsigned char* data, size_t bytes,
                   size_t size);

}  // namespace onehop::bench
