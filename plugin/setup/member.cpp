#include "plugin/setup/member.hpp"

namespace onehop {

Member::~Member() {
  if (device_index < 0) return;
  const CurrentDevice scope(device, device_index);
  order.reset();
  staging.reset();
  if (stream != nullptr) device.destroy_stream(stream);
  if (pinned_ != nullptr) device.release_pinned(pinned_);
}

bool Member::ask(const nccl::Functions& functions) {
  return functions.CommCount(handle, &ranks) == nccl::kSuccess &&
         functions.CommUserRank(handle, &rank) == nccl::kSuccess &&
         functions.CommCuDevice(handle, &device_index) == nccl::kSuccess;
}

Status Member::open() {
  const CurrentDevice scope(device, device_index);
  Result<Stream> made = device.create_stream();
  if (!made) return made.error();
  stream = *made;
  Result<void*> memory = device.allocate_pinned(kRecordBytes * (static_cast<size_t>(ranks) + 1));
  if (!memory) return memory.error();
  pinned_ = static_cast<unsigned char*>(*memory);
  return {};
}

nccl::Result Member::send(const nccl::Functions& functions) {
  const CurrentDevice scope(device, device_index);
  return functions.AllGather(pinned_, pinned_ + kRecordBytes, kRecordBytes, nccl::kInt8, handle, stream);
}

}  // namespace onehop
