// The libnccl images of this process: each has its own functions, and a call goes back to the image that it
// came through.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/device.hpp"
#include "plugin/interpose/interpose.hpp"
#include "plugin/nccl_abi.hpp"

namespace onehop {

inline constexpr size_t kMaxImages = 8;

/// One libnccl image whose functions are taken over. Never goes away, even when the image is unmapped.
struct Image {
  size_t index = 0;
  std::string path;
  uintptr_t base = 0;
  nccl::Functions original{};
  StandinDeviceFunction standin = nullptr;  ///< not null in the stand-in libnccl
  std::optional<interpose::Patch> patch;

  /// The device of this image's communicators. Made at the first call: nothing of CUDA is touched before.
  Result<Device*> device();

 private:
  std::once_flag made_;
  Device* device_ = nullptr;
};

class Images {
 public:
  /// Takes over every libnccl image that is mapped and not taken over yet. Called when the plugin is loaded
  /// and whenever the loader mapped or unmapped something.
  void scan();

  Image& operator[](size_t index) { return images_[index]; }
  size_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  bool knows(const interpose::Image&) const;
  void take_over(const interpose::Image&);

  std::mutex scanning_;
  std::array<Image, kMaxImages> images_;
  std::atomic<size_t> count_{0};
  std::vector<std::pair<uintptr_t, std::string>> refused_;  ///< base and path: each is reported once
};

}  // namespace onehop
