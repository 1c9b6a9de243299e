#include "test/standin/cudart/devices.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "test/standin/cudart/runtime.hpp"

namespace onehop::standin {
namespace {

constexpr int kDefaultDevices = 8;
constexpr int kMaxDevices = 64;
constexpr int kFirstBus = 0x10;

thread_local int current = 0;

std::array<unsigned char, 16> uuid_of(int physical) {
  std::array<unsigned char, 16> uuid{'o', 'n', 'e', 'h', 'o', 'p', '-', 's', 't', 'a', 'n', 'd', 'i', 'n'};
  uuid.back() = static_cast<unsigned char>(physical);
  return uuid;
}

/// As nvidia-smi shows it.
std::string identity_of(int physical) {
  std::string text = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                  uuid_of(physical)[i]);
    text += digits;
  }
  return text;
}

/// The device that an entry of CUDA_VISIBLE_DEVICES names, by ordinal or by identity; -1: none.
int device_named(const std::string& entry, int physical) {
  if (entry.rfind("GPU-", 0) == 0) {
    for (int device = 0; device < physical; ++device)
      if (identity_of(device) == entry) return device;
    return -1;
  }
  char* end = nullptr;
  const long device = std::strtol(entry.c_str(), &end, 10);
  return end != entry.c_str() && device >= 0 && device < physical ? static_cast<int>(device) : -1;
}

std::vector<int> find_visible() {
  int physical = kDefaultDevices;
  if (const char* setting = std::getenv("ONEHOP_STANDIN_DEVICES")) physical = std::atoi(setting);
  if (physical < 0 || physical > kMaxDevices) physical = kDefaultDevices;
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int device = 0; device < physical; ++device) visible.push_back(device);
    return visible;
  }
  // As CUDA: the list ends at the first entry that names no device.
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const int device = device_named(entry, physical);
    if (device < 0) break;
    visible.push_back(device);
  }
  return visible;
}

/// Physical ordinals of the visible devices. Never destroyed: threads of streams outlive main().
const std::vector<int>& visible() {
  static const auto* devices = new std::vector<int>(find_visible());
  return *devices;
}

}  // namespace

int device_count() {
  return static_cast<int>(visible().size());
}
bool is_device(int device) {
  return device >= 0 && device < device_count();
}
int current_device() {
  return current;
}
void set_current_device(int device) {
  current = device;
}

int physical_device(int device) {
  return visible()[static_cast<size_t>(device)];
}

std::array<unsigned char, 16> device_uuid(int device) {
  return uuid_of(visible()[device]);
}

std::array<char, 16> device_pci(int device) {
  std::array<char, 16> id{};
  std::snprintf(id.data(), id.size(), "0000:%02x:00.0",
                static_cast<unsigned>(kFirstBus + visible()[device]) & 0xff);
  return id;
}

}  // namespace onehop::standin

using namespace onehop::standin;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return report(cudaErrorInvalidValue);
  *count = device_count();
  return report(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return report(cudaErrorInvalidValue);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return report(cudaErrorInvalidValue);
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "onehop CPU stand-in");
  std::memcpy(properties->uuid.bytes, device_uuid(device).data(), sizeof properties->uuid.bytes);
  properties->totalGlobalMem = kDeviceMemory;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->canMapHostMemory = 1;
  properties->unifiedAddressing = 1;
  properties->pciBusID = kFirstBus + visible()[device];
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return report(cudaErrorInvalidValue);
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrPciBusId:
      *value = kFirstBus + visible()[device];
      break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (id == nullptr || length < 13) return report(cudaErrorInvalidValue);
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "%s", device_pci(device).data());
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return report(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer)) return report(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return report(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == current_device()) return report(cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return report(is_device(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return report(cudaErrorInvalidValue);
  *free = *total = kDeviceMemory;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

}  // extern "C"
