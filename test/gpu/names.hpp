// Names for the parameters of tests, of letters and digits alone.
#pragma once

#include <string>

#include "kernels/operation.hpp"
#include "plugin/staging/staging.hpp"

namespace onehop::test {

inline std::string name_of(Element element) {
  constexpr const char* kNames[kElements] = {"Int8",    "Uint8",    "Int32",      "Uint32",
                                             "Int64",   "Uint64",   "Float16",    "Float32",
                                             "Float64", "Bfloat16", "Float8e4m3", "Float8e5m2"};
  return kNames[static_cast<uint32_t>(element)];
}

inline std::string name_of(Reduction reduction) {
  constexpr const char* kNames[kReductions] = {"Sum", "Prod", "Max", "Min", "Avg"};
  return kNames[static_cast<uint32_t>(reduction)];
}

/// "TwoShotPull".
inline std::string word_of(Method method) {
  std::string word;
  bool upper = true;
  for (const char* c = onehop::name_of(method); *c != 0; ++c) {
    const bool letter = *c >= 'a' && *c <= 'z';
    if (letter) word += static_cast<char>(upper ? *c - 'a' + 'A' : *c);
    upper = !letter;
  }
  return word;
}

inline std::string word_of(StagingKind kind) {
  return kind == StagingKind::kPeer ? "DeviceMemory" : "HostMemory";
}

}  // namespace onehop::test
