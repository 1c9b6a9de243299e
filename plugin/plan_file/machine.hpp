// What a plan file knows a machine and a communicator by.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace onehop {

enum class Fact : uint8_t {
  kOnehop,     ///< version
  kGpus,       ///< models by rank, with compute capability and multiprocessors
  kLinks,      ///< where they are on the PCI tree, and which reach which other by more than PCIe
  kDriver,     ///< version
  kNccl,       ///< version, and whether it is kept from peer access
  kRanks,      ///< how many
  kProcesses,  ///< how many
  kStaging,    ///< kind
};
inline constexpr size_t kFacts = 8;
/// Their names in a plan file.
inline constexpr std::array<const char*, kFacts> kFactNames = {"onehop", "gpus",  "links",     "driver",
                                                               "nccl",   "ranks", "processes", "staging"};

/// A text for each fact, of printable ASCII without '"' and '\'. Two machines are the same if all are equal.
struct Machine {
  std::array<std::string, kFacts> facts;

  std::string& operator[](Fact fact) { return facts[static_cast<size_t>(fact)]; }
  const std::string& operator[](Fact fact) const { return facts[static_cast<size_t>(fact)]; }
  bool operator==(const Machine&) const = default;
};

inline bool is_fact_character(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// What a communicator's plan is looked up by, and what may be taken from it.
struct Planned {
  Machine machine;
  uint32_t most_blocks = 0;  ///< that run at once
};

/// As the machine's object of a plan file.
inline std::string to_json(const Machine& machine) {
  std::string text;
  for (size_t f = 0; f < kFacts; ++f)
    text += (f == 0 ? "{\"" : ", \"") + std::string(kFactNames[f]) + "\": \"" + machine.facts[f] + '"';
  return text + "}";
}

}  // namespace onehop
