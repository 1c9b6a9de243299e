// The devices that the stand-in pretends to have, and the calling thread's current one.
#pragma once

#include <array>
#include <cstddef>

namespace onehop::standin {

inline constexpr size_t kDeviceMemory = size_t{64} << 30;

int device_count();  ///< visible devices
bool is_device(int device);
int current_device();
void set_current_device(int device);  ///< only with is_device(device)

/// The ordinal, whatever CUDA_VISIBLE_DEVICES says.
int physical_device(int device);
/// Derived from the physical ordinal, so it does not depend on CUDA_VISIBLE_DEVICES.
std::array<unsigned char, 16> device_uuid(int device);
std::array<char, 16> device_pci(int device);

}  // namespace onehop::standin
