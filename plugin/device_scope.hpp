// What a call changes on the caller's thread, and puts back.
#pragma once

#include "plugin/device.hpp"

namespace onehop {

/// Makes a device current, and the old one again at the end.
class CurrentDevice {
 public:
  CurrentDevice(Device& device, int index) : device_(device) {
    const Result<int> current = device.current();
    if (!current || *current == index) return;
    before_ = *current;
    changed_ = static_cast<bool>(device.set_current(index));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) (void)device_.set_current(before_);
  }

 private:
  Device& device_;
  int before_ = 0;
  bool changed_ = false;
};

/// Lets this thread allocate and wait although a stream (the caller's, say) is being captured.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(Device& device)
      : device_(device), before_(device.exchange_capture_mode(kRelaxed)) {}
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { (void)device_.exchange_capture_mode(before_); }

 private:
  static constexpr int kRelaxed = 2;  ///< cudaStreamCaptureModeRelaxed
  Device& device_;
  int before_;
};

}  // namespace onehop
