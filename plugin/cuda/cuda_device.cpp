#include "plugin/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "kernels/cuda/launch.hpp"
#include "plugin/cuda/capture_record.hpp"

namespace onehop {
namespace {

/// A failed call as an Error. Clears the runtime's last error, so that none of onehop's is left to be found
/// by a later check.
Error error_of(const char* what, cudaError_t error) {
  (void)cudaGetLastError();
  return {std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

Status status_of(const char* what, cudaError_t error) {
  if (error == cudaSuccess) [[likely]]
    return {};
  return error_of(what, error);
}

/// Memory is handed to other processes in whole allocations of this size: the driver maps at least so much,
/// and must not find somebody else's memory in it.
constexpr size_t kGranule = 2 << 20;

/// From the driver by itself: cudaGetDeviceProperties() has it too, but reads the clocks for it, which takes
/// milliseconds, and set-up asks once for each rank.
Result<cudaUUID_t> uuid_of(int device) {
  constexpr unsigned kVersion = 11040;  // from which on a part of a GPU (MIG) has an UUID of its own
  void *get = nullptr, *get_uuid = nullptr;
  int handle = 0;
  cudaUUID_t uuid;
  if (cudaGetDriverEntryPointByVersion("cuDeviceGet", &get, kVersion, cudaEnableDefault) == cudaSuccess &&
      cudaGetDriverEntryPointByVersion("cuDeviceGetUuid", &get_uuid, kVersion, cudaEnableDefault) ==
          cudaSuccess &&
      get != nullptr && get_uuid != nullptr &&
      reinterpret_cast<int (*)(int*, int)>(get)(&handle, device) == 0 &&
      reinterpret_cast<int (*)(cudaUUID_t*, int)>(get_uuid)(&uuid, handle) == 0)
    return uuid;
  (void)cudaGetLastError();
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error_of("cudaGetDeviceProperties", error);
  return properties.uuid;
}

class CudaDevice final : public Device {
 public:
  Result<int> current() override {
    int device = -1;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error_of("cudaGetDevice", error);
    return device;
  }
  Status set_current(int device) override { return status_of("cudaSetDevice", cudaSetDevice(device)); }

  Result<DeviceIdentity> identity() override {
    const Result<int> device = current();
    if (!device) return device.error();
    int major = 0, minor = 0, multiprocessors = 0, domain = 0, bus = 0, slot = 0;
    for (const auto& [attribute, value] :
         {std::pair{cudaDevAttrComputeCapabilityMajor, &major},
          std::pair{cudaDevAttrComputeCapabilityMinor, &minor},
          std::pair{cudaDevAttrMultiProcessorCount, &multiprocessors},
          std::pair{cudaDevAttrPciDomainId, &domain}, std::pair{cudaDevAttrPciBusId, &bus},
          std::pair{cudaDevAttrPciDeviceId, &slot}}) {
      const cudaError_t error = cudaDeviceGetAttribute(value, attribute, *device);
      if (error != cudaSuccess) return error_of("cudaDeviceGetAttribute", error);
    }
    const Result<cudaUUID_t> uuid = uuid_of(*device);
    if (!uuid) return uuid.error();
    DeviceIdentity identity;
    static_assert(sizeof(*uuid) == sizeof(identity.uuid));
    std::memcpy(identity.uuid.data(), &*uuid, sizeof(*uuid));
    identity.capability = major * 10 + minor;
    identity.multiprocessors = static_cast<uint32_t>(multiprocessors);
    std::snprintf(identity.pci.data(), identity.pci.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(domain),
                  static_cast<unsigned>(bus), static_cast<unsigned>(slot));
    return identity;
  }

  Result<DeviceTraits> traits() override {
    const Result<int> device = current();
    if (!device) return device.error();
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, *device);
    if (error != cudaSuccess) return error_of("cudaGetDeviceProperties", error);
    int cuda = 0;
    error = cudaDriverGetVersion(&cuda);
    if (error != cudaSuccess) return error_of("cudaDriverGetVersion", error);
    return DeviceTraits{properties.name,
                        "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10)};
  }

  // PCIe carries no atomic operations between GPUs; NVLink does.
  std::optional<bool> is_linked(const std::array<char, 16>& pci) override {
    const Result<int> device = current();
    int peer = -1, atomics = 0;
    cudaError_t error = device ? cudaDeviceGetByPCIBusId(&peer, pci.data()) : cudaErrorInvalidDevice;
    if (error == cudaSuccess)
      error = cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, *device, peer);
    ignore(error);
    if (error != cudaSuccess) return std::nullopt;
    return atomics != 0;
  }

  Result<size_t> free_memory() override {
    size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    if (error != cudaSuccess) return error_of("cudaMemGetInfo", error);
    return free;
  }

  Result<void*> allocate(size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, (bytes + kGranule - 1) / kGranule * kGranule);
    if (error != cudaSuccess) return error_of("cudaMalloc", error);
    return memory;
  }
  void release(void* memory) override { ignore(cudaFree(memory)); }

  Result<MemoryHandle> export_memory(void* memory) override {
    MemoryHandle handle;
    cudaIpcMemHandle_t ipc;
    static_assert(sizeof(ipc) == sizeof(handle.bytes));
    const cudaError_t error = cudaIpcGetMemHandle(&ipc, memory);
    if (error != cudaSuccess) return error_of("cudaIpcGetMemHandle", error);
    std::memcpy(handle.bytes.data(), &ipc, sizeof(ipc));
    return handle;
  }
  Result<void*> import_memory(const MemoryHandle& handle) override {
    cudaIpcMemHandle_t ipc;
    std::memcpy(&ipc, handle.bytes.data(), sizeof(ipc));
    void* memory = nullptr;
    const cudaError_t error = cudaIpcOpenMemHandle(&memory, ipc, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess) return error_of("cudaIpcOpenMemHandle", error);
    return memory;
  }
  void unmap_memory(void* imported) override { ignore(cudaIpcCloseMemHandle(imported)); }

  Status enable_peer(int peer) override {
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      (void)cudaGetLastError();
      return {};
    }
    return status_of("cudaDeviceEnablePeerAccess", error);
  }

  Result<void*> allocate_pinned(size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (error != cudaSuccess) return error_of("cudaHostAlloc", error);
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release_pinned(void* memory) override { ignore(cudaFreeHost(memory)); }

  Status register_host(void* memory, size_t bytes) override {
    const cudaError_t error =
        cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (error != cudaSuccess) return error_of("cudaHostRegister", error);
    void* on_device = nullptr;
    if (cudaHostGetDevicePointer(&on_device, memory, 0) == cudaSuccess && on_device == memory) return {};
    unregister_host(memory);
    return Error{"the GPU addresses host memory otherwise than the CPU"};
  }
  void unregister_host(void* memory) override { ignore(cudaHostUnregister(memory)); }

  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    return status_of("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }
  Status fill(void* to, unsigned char byte, size_t bytes, Stream stream) override {
    return status_of("cudaMemsetAsync", cudaMemsetAsync(to, byte, bytes, stream));
  }

  Result<Stream> create_stream() override {
    Stream stream = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return error_of("cudaStreamCreateWithFlags", error);
    return stream;
  }
  void destroy_stream(Stream stream) override { ignore(cudaStreamDestroy(stream)); }
  Result<bool> finished(Stream stream) override { return finished("a stream", cudaStreamQuery(stream)); }

  Result<StreamState> state(Stream stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long capture = 0, id = 0;
    const cudaError_t error = capture_record::info(stream, &status, &capture);
    // The legacy default stream must not be asked while another stream is captured; it is not captured
    // itself.
    if (error == cudaErrorStreamCaptureImplicit)
      (void)cudaGetLastError();
    else if (error != cudaSuccess)
      return error_of("cudaStreamGetCaptureInfo", error);
    else if (status == cudaStreamCaptureStatusActive)
      return StreamState{capture, 0};
    ignore(cudaStreamGetId(stream, &id));
    return StreamState{0, id};
  }
  int exchange_capture_mode(int mode) override {
    auto exchanged = static_cast<cudaStreamCaptureMode>(mode);
    ignore(cudaThreadExchangeStreamCaptureMode(&exchanged));
    return exchanged;
  }

  Result<Event> create_event() override {
    Event event = nullptr;
    const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return error_of("cudaEventCreateWithFlags", error);
    return event;
  }
  void destroy_event(Event event) override { ignore(cudaEventDestroy(event)); }
  Result<bool> finished(Event event) override { return finished("an event", cudaEventQuery(event)); }
  Status record(Event event, Stream stream) override {
    return status_of("cudaEventRecord", cudaEventRecord(event, stream));
  }
  Status wait(Stream stream, Event event) override {
    return status_of("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, 0));
  }
  Status wait_external(Stream stream, Event event) override {
    return status_of("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  }
  Status record_external(Event event, Stream stream, RecordPlace& place) override {
    return status_of("recording an event in a capture", capture_record::put(event, stream, place));
  }

  Status begin_capture(Stream stream) override {
    return status_of("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  Result<Graph> end_capture(Stream stream) override {
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error != cudaSuccess) return error_of("cudaStreamEndCapture", error);
    Graph executable = nullptr;
    error = cudaGraphInstantiateWithFlags(&executable, graph, 0);
    if (error == cudaSuccess) error = cudaGraphUpload(executable, stream);
    ignore(cudaGraphDestroy(graph));
    if (error != cudaSuccess) return error_of("cudaGraphInstantiate", error);
    return executable;
  }
  Status launch(Graph graph, Stream stream) override {
    return status_of("cudaGraphLaunch", cudaGraphLaunch(graph, stream));
  }
  void destroy_graph(Graph graph) override { ignore(cudaGraphExecDestroy(graph)); }
  Result<Event> create_timer() override {
    Event event = nullptr;
    const cudaError_t error = cudaEventCreate(&event);
    if (error != cudaSuccess) return error_of("cudaEventCreate", error);
    return event;
  }
  Status record_timer(Event event, Stream stream) override {
    return status_of("cudaEventRecordWithFlags",
                     cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  }
  Result<double> elapsed_us(Event from, Event to) override {
    float ms = 0;
    const cudaError_t error = cudaEventElapsedTime(&ms, from, to);
    if (error != cudaSuccess) return error_of("cudaEventElapsedTime", error);
    return ms * 1000.0;
  }

  Status load_kernels() override { return status_of("loading the kernels", load_cuda_kernels()); }
  Status launch(const CommView& comm, const Operation& operation, Stream stream) override {
    const auto packs = static_cast<uint32_t>(
        (operation.count * element_size(operation.element) + sizeof(Pack) - 1) / sizeof(Pack));
    const Geometry geometry = geometry_of(operation, packs, comm);
    return status_of("launching a kernel", onehop::launch(comm, operation, geometry, stream));
  }

 private:
  static void ignore(cudaError_t error) {
    if (error != cudaSuccess) (void)cudaGetLastError();
  }

  static Result<bool> finished(const char* what, cudaError_t error) {
    if (error == cudaSuccess) return true;
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    return error_of(what, error);
  }
};

}  // namespace

Device* cuda_device() {
  static CudaDevice& device = *new CudaDevice;
  return &device;
}

}  // namespace onehop
