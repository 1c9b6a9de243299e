// What each rank says of itself when a communicator is set up, and the verdict that every rank draws from all
// of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "plugin/device.hpp"

namespace onehop {

/// Why a rank wants no part of it, if so.
enum class Veto : uint32_t {
  kNone = 0,
  kDisabled = 1,
  kBadSetting = 2,
  kNcclSwitch = 3,
  kResources = 4,
  kNcclVersion = 5
};

/// One rank's record, 256 bytes, the same bytes from every version of onehop up to `wire`: ranks with
/// different versions must be able to tell that they differ. All fields little-endian. Nothing in it is
/// trusted before verdict_of() has looked at it.
struct Hello {
  static constexpr uint64_t kMagic = 0x31706F68656E6FULL;  ///< "onehop1"
  static constexpr uint32_t kWire = 3;

  uint64_t magic = kMagic;
  uint32_t wire = kWire;  ///< version of this record and of the steps of set-up
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Veto veto = Veto::kNone;
  uint64_t host = 0;      ///< identity of the node
  uint64_t process = 0;   ///< identity of the process
  uint64_t settings = 0;  ///< settings_hash()
  uint64_t free_memory = 0;
  std::array<unsigned char, 16> gpu{};
  std::array<char, 16> pci{};
  std::array<char, 16> version{};  ///< of onehop, zero-terminated
  int32_t pid = 0;
  uint32_t launches_block = 0;  ///< CUDA_LAUNCH_BLOCKING=1
  std::array<char, 96> veto_text{};
  uint32_t takes_fp8 = 0;      ///< NCCL reduces fp8 on this rank
  uint32_t avoids_peers = 0;   ///< NCCL is told to keep away from peer access on this rank
  uint32_t failed_probes = 0;  ///< kinds of staging that a probe found broken before, a bit each
  std::array<unsigned char, 4> padding{};
  uint64_t nonce = 0;           ///< random: all ranks' together tell this communicator from every other
  uint64_t user_namespace = 0;  ///< identity of the one that `user` is of
  uint64_t plan = 0;            ///< hash of the plan file; 0: none that can be used
  uint32_t user = 0;            ///< that the process runs as
  std::array<unsigned char, 4> reserved{};
};
static_assert(sizeof(Hello) == 256 && std::is_trivially_copyable_v<Hello>);

/// Why this communicator is declined, or nothing if it is not. A pure function of the table, which is the
/// same on all ranks.
std::optional<std::string> verdict_of(std::span<const Hello> table);

/// Whether the numbers in the table do not tell if all ranks run as one user: then that is asked of the
/// kernel, when they meet over their sockets. A pure function of the table too.
bool users_are_unclear(std::span<const Hello> table);

/// Identity of this node, the same in every process and container of one boot, whatever namespaces they have:
/// boot id, and NCCL_HOSTID where it is set (NCCL itself takes ranks with different ones for different
/// nodes). 0: there is neither.
uint64_t host_identity();

}  // namespace onehop
