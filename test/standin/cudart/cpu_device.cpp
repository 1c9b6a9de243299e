// onehop's device on the stand-in: the same streams, events, graphs and memory that the program itself uses.

#include <cstdlib>
#include <cstring>

#include "kernels/host/host_kernels.hpp"
#include "plugin/device.hpp"
#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/devices.hpp"
#include "test/standin/cudart/memory.hpp"

namespace onehop::standin {
namespace {

Error error_of(const char* what, cudaError_t error) {
  return Error{std::string(what) + ": " + cudaGetErrorString(error)};
}

Status status_of(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return error_of(what, error);
}

class CpuDevice final : public Device {
 public:
  Result<int> current() override { return current_device(); }

  Status set_current(int device) override {
    if (!is_device(device)) return error_of("cannot set the device", cudaErrorInvalidDevice);
    set_current_device(device);
    return {};
  }

  Result<DeviceIdentity> identity() override {
    // fp8 is NCCL's from 9.0 on; a test of an older GPU says so.
    const char* capability = std::getenv("ONEHOP_STANDIN_CAPABILITY");
    return DeviceIdentity{device_uuid(current_device()), device_pci(current_device()),
                          capability != nullptr ? std::atoi(capability) : 90};
  }

  Result<size_t> free_memory() override { return kDeviceMemory; }

  Result<void*> allocate(size_t bytes) override { return allocate_kind(MemoryKind::kDevice, bytes); }
  void release(void* memory) override { release_kind(MemoryKind::kDevice, memory); }

  Result<MemoryHandle> export_memory(void* memory) override {
    const auto shared = standin::export_memory(memory);
    if (!shared) return error_of("cannot export memory", cudaErrorInvalidValue);
    MemoryHandle handle;
    std::memcpy(handle.bytes.data(), &*shared, sizeof *shared);
    return handle;
  }

  Result<void*> import_memory(const MemoryHandle& handle) override {
    SharedHandle shared{};
    std::memcpy(&shared, handle.bytes.data(), sizeof shared);
    void* memory = standin::import_memory(shared);
    if (memory == nullptr) return error_of("cannot import memory", cudaErrorMapBufferObjectFailed);
    return memory;
  }

  void unmap_memory(void* imported) override { release_kind(MemoryKind::kImported, imported); }

  Status enable_peer(int peer) override {
    if (!is_device(peer)) return error_of("cannot enable peer access", cudaErrorInvalidDevice);
    return {};
  }

  Result<void*> allocate_pinned(size_t bytes) override { return allocate_kind(MemoryKind::kPinned, bytes); }
  void release_pinned(void* memory) override { release_kind(MemoryKind::kPinned, memory); }

  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    return status_of("cannot copy", issue(stream, [=] { std::memmove(to, from, bytes); }));
  }

  Status fill(void* to, unsigned char byte, size_t bytes, Stream stream) override {
    return status_of("cannot fill", issue(stream, [=] { std::memset(to, byte, bytes); }));
  }

  Result<Stream> create_stream() override {
    Lock lock;
    return Stream{standin::create_stream(lock, StreamKind::kNonBlocking, cudaStreamNonBlocking, 0).get()};
  }

  void destroy_stream(Stream handle) override {
    Lock lock;
    if (const StreamRef stream = find_stream(lock, handle)) standin::destroy_stream(lock, stream);
  }

  Result<bool> finished(Stream handle) override {
    Lock lock;
    const StreamRef stream = find_stream(lock, handle);
    if (stream == nullptr) return error_of("cannot query a stream", cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = check_wait(*stream)) return error_of("cannot query a stream", error);
    return !is_pending(end_of_work(lock, stream));
  }

  uint64_t stream_id(Stream handle) override {
    Lock lock;
    const StreamRef stream = find_stream(lock, handle);
    return stream != nullptr ? stream->id : 0;
  }

  Result<Capture> capture(Stream handle) override {
    Lock lock;
    const StreamRef stream = find_stream(lock, handle);
    if (stream == nullptr) return error_of("cannot look for a capture", cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = check_legacy(*stream)) return error_of("cannot look for a capture", error);
    if (stream->capture == nullptr) return Capture{};
    return Capture{true, stream->capture->id};
  }

  int exchange_capture_mode(int mode) override { return standin::exchange_capture_mode(mode); }

  Result<Event> create_event() override {
    Lock lock;
    return Event{standin::create_event(lock, cudaEventDisableTiming).get()};
  }

  void destroy_event(Event event) override {
    Lock lock;
    standin::destroy_event(lock, event);
  }

  Result<bool> finished(Event event) override {
    Lock lock;
    cudaError_t state = check_unsafe_call(lock);
    if (state == cudaSuccess) state = query_event(lock, event);
    if (state == cudaSuccess || state == cudaErrorNotReady) return state == cudaSuccess;
    return error_of("cannot query an event", state);
  }

  Status record(Event event, Stream stream) override {
    Lock lock;
    return status_of("cannot record an event", record_event(lock, event, stream, cudaEventRecordDefault));
  }

  Status wait(Stream stream, Event event) override {
    Lock lock;
    return status_of("cannot wait for an event", wait_event(lock, stream, event, cudaEventWaitDefault));
  }

  Status wait_external(Stream stream, Event event) override {
    Lock lock;
    return status_of("cannot capture a wait", wait_event(lock, stream, event, cudaEventWaitExternal));
  }

  // Each call records again, which comes to the same: what waits for the event waits for the last.
  Status record_external(Event event, Stream stream, RecordPlace&) override {
    Lock lock;
    return status_of("cannot capture a record", record_event(lock, event, stream, cudaEventRecordExternal));
  }

  Status load_kernels() override { return {}; }

  Status launch(const CommView& comm, const Operation& operation, Stream stream) override {
    return status_of("cannot launch a kernel", issue(stream, [=] { run_on_host(comm, operation); }));
  }

 private:
  // The device's own allocations obey the rules of capture, as CUDA's do: the caller relaxes its thread
  // first.
  static Result<void*> allocate_kind(MemoryKind kind, size_t bytes) {
    {
      Lock lock;
      if (const cudaError_t error = check_unsafe_call(lock)) return error_of("cannot allocate memory", error);
    }
    void* memory = standin::allocate(kind, bytes);
    if (memory == nullptr) return error_of("cannot allocate memory", cudaErrorMemoryAllocation);
    return memory;
  }

  static void release_kind(MemoryKind kind, void* memory) {
    {
      Lock lock;
      (void)check_unsafe_call(lock);
    }
    (void)standin::release(kind, memory);
  }
};

}  // namespace
}  // namespace onehop::standin

/// Null: the caller was built against another version of the interface.
extern "C" onehop::Device* onehop_standin_cpu_device(uint32_t interface_version) {
  static auto* device = new onehop::standin::CpuDevice;
  return interface_version == onehop::Device::kInterfaceVersion ? device : nullptr;
}

extern "C" onehop::Device* onehop_standin_device(uint32_t interface_version) {
  return onehop_standin_cpu_device(interface_version);
}
