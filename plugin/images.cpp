#include "plugin/images.hpp"

#include "plugin/cuda/cuda_device.hpp"
#include "plugin/globals.hpp"
#include "plugin/hooks.hpp"
#include "plugin/log.hpp"
#include "plugin/nccl_functions.hpp"

namespace onehop {
namespace {

/// Functions that onehop only calls.
void find_unpatched(const interpose::Image& mapped, nccl::Functions& functions) {
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(mapped.find(name).address);
  };
  find("ncclAllGather", functions.AllGather);
  find("ncclCommCount", functions.CommCount);
  find("ncclCommCuDevice", functions.CommCuDevice);
  find("ncclCommUserRank", functions.CommUserRank);
  find("ncclGetVersion", functions.GetVersion);
  find("ncclGetErrorString", functions.GetErrorString);
}

/// The first function that NCCL has had since 2.10 and this image lacks, or null.
const char* missing_function(const interpose::Image& mapped) {
  for (const char* name : kRequiredFunctions)
    if (mapped.find(name).address == nullptr) return name;
  return nullptr;
}

}  // namespace

Result<Device*> Image::device() {
  std::call_once(
      made_, [this] { device_ = standin != nullptr ? standin(Device::kInterfaceVersion) : cuda_device(); });
  if (device_ != nullptr) return device_;
  return Error{standin != nullptr ? "the stand-in was built with another version of onehop"
                                  : "onehop was built without CUDA"};
}

void Images::scan() {
  const std::lock_guard lock(scanning_);
  for (const interpose::Image& mapped : interpose::images_defining("ncclAllReduce")) {
    if (!knows(mapped)) take_over(mapped);
  }
}

bool Images::knows(const interpose::Image& mapped) const {
  for (size_t i = 0; i < count(); ++i) {
    // intact: another image may have come to where one was unmapped.
    if (images_[i].base == mapped.base() && images_[i].path == mapped.path() && images_[i].patch->intact())
      return true;
  }
  for (const auto& [base, path] : refused_)
    if (base == mapped.base() && path == mapped.path()) return true;
  return false;
}

void Images::take_over(const interpose::Image& mapped) {
  const auto refuse = [&](const std::string& why) {
    refused_.emplace_back(mapped.base(), mapped.path());
    log::warn("OFF for {}: {}; this library is left as it was", mapped.path(), why);
  };
  if (const char* name = missing_function(mapped)) return refuse(fmt::format("it has no {}", name));
  const size_t index = count();
  if (index == kMaxImages)
    return refuse(fmt::format("onehop handles {} libnccl images in one process", kMaxImages));
  Image& image = images_[index];
  image.index = index;
  image.path = mapped.path();
  image.base = mapped.base();
  image.original = {};
  image.standin = reinterpret_cast<StandinDeviceFunction>(mapped.find(kStandinDeviceSymbol).address);
  find_unpatched(mapped, image.original);
  Result<interpose::Patch> patch = interpose::Patch::prepare(mapped, hooks_of(image));
  if (!patch) return refuse(patch.reason());
  globals().statistics.publish();
  // A call may come in as soon as the first entry is changed, and finds all it needs.
  image.patch.emplace(std::move(*patch));
  if (const Status installed = image.patch->install(); !installed) {
    image.patch.reset();
    return refuse(installed.reason());
  }
  count_.store(index + 1, std::memory_order_release);
  globals().statistics.set_images(count());
  log::debug("took over {}", image.path);
}

}  // namespace onehop
