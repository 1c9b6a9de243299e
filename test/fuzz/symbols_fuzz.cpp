// Any bytes as a mapped object with its dynamic section at the beginning: the function is found within the
// object, or not at all, and soon. The object's base is its first byte.
#include <ctime>

#include "plugin/interpose/dynamic_symbols.hpp"
#include "test/fuzz/guarded_memory.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop::fuzz;
  static GuardedMemory memory(2);
  size &= ~size_t{7};  // as the loader aligns a dynamic section
  if (size == 0 || size > 2 * kPage) return 0;
  unsigned char* const object = memory.place(data, size);
  const auto begin = reinterpret_cast<uintptr_t>(object);
  const std::clock_t before = std::clock();
  const auto found = onehop::interpose::find_function({begin, begin, begin + size, object}, "ncclAllReduce");
  require(std::clock() - before < CLOCKS_PER_SEC, "the search ends soon");
  if (found.address == nullptr) return 0;
  require(found.address >= object && found.address < object + size, "a function is within the object");
  require(found.size <= static_cast<size_t>(object + size - found.address), "so is all of it");
  return 0;
}
