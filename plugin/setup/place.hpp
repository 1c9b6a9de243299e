// What each rank says of its GPU and of what is around it, where all ranks have the same plan file; and the
// machine that all of it makes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "plugin/device.hpp"
#include "plugin/plan_file/machine.hpp"
#include "plugin/setup/hello.hpp"

namespace onehop {

/// One rank's record.
struct Place {
  std::array<char, 64> model{}, driver{};
  std::array<char, 40> slot{};
  uint64_t root = 0, port = 0;  ///< on the PCI tree; hashes, equal for GPUs at the same one
  int32_t capability = 0, nccl = 0;
  uint32_t multiprocessors = 0;
  uint32_t seen = 0;    ///< ranks whose GPUs this process sees, a bit each
  uint32_t linked = 0;  ///< of these, those that it reaches by more than PCIe
  std::array<unsigned char, 52> reserved{};
};
static_assert(sizeof(Place) == 256 && std::is_trivially_copyable_v<Place>);

Place own_place(Device&, uint32_t rank, int nccl, std::span<const Hello>);

/// What a plan file knows this communicator by, but for the kind of staging. The same on all ranks, as it is
/// a function of what all of them have: so is the plan that is found by it.
Machine machine_of(std::span<const Hello>, std::span<const Place>);

/// Blocks that a launch of any rank may have: blocks_beside() on the GPU with the least room.
uint32_t most_blocks_of(std::span<const Hello>, std::span<const Place>);

}  // namespace onehop
