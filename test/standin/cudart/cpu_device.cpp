// onehop's device on the stand-in: the same streams, events, graphs and memory that the program itself uses.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "kernels/host/host_kernels.hpp"
#include "plugin/device.hpp"
#include "test/standin/cudart/broken_links.hpp"
#include "test/standin/cudart/capture.hpp"
#include "test/standin/cudart/devices.hpp"
#include "test/standin/cudart/memory.hpp"
#include "test/standin/cudart/modelled_times.hpp"
#include "test/standin/cudart/places.hpp"

namespace onehop::standin {
namespace {

Error error_of(const char* what, cudaError_t error) {
  return Error{std::string(what) + ": " + cudaGetErrorString(error)};
}

Status status_of(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return error_of(what, error);
}

/// What a test wants this to end with in this process: ONEHOP_STANDIN_FAIL names what fails, divided by
/// commas, each with '=' and CUDA's number of the error if it is not `usually`.
cudaError_t failure_of(std::string_view what, cudaError_t usually) {
  const char* setting = std::getenv("ONEHOP_STANDIN_FAIL");
  std::string_view rest = setting != nullptr ? setting : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size()), equals = std::min(rest.find('='), end);
    if (rest.substr(0, equals) == what)
      return equals == end ? usually : static_cast<cudaError_t>(std::atoi(rest.data() + equals + 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cudaSuccess;
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
                          capability != nullptr ? std::atoi(capability) : 90, 132};
  }

  Result<DeviceTraits> traits() override { return DeviceTraits{"onehop CPU stand-in", "none"}; }
  std::optional<bool> is_linked(const std::array<char, 16>&) override { return false; }

  Result<size_t> free_memory() override { return kDeviceMemory; }

  Result<void*> allocate(size_t bytes) override {
    come_to("allocate");
    if (const cudaError_t error = failure_of("allocate", cudaErrorMemoryAllocation))
      return error_of("cannot allocate memory", error);
    return allocate_kind(MemoryKind::kDevice, bytes);
  }
  void release(void* memory) override {
    come_to("release");
    release_kind(MemoryKind::kDevice, memory);
  }

  Result<MemoryHandle> export_memory(void* memory) override {
    come_to("export");
    const auto shared = standin::export_memory(memory);
    if (!shared) return error_of("cannot export memory", cudaErrorInvalidValue);
    MemoryHandle handle;
    static_assert(sizeof *shared < sizeof handle.bytes);
    std::memcpy(handle.bytes.data(), &*shared, sizeof *shared);
    handle.bytes.back() = static_cast<unsigned char>(physical_device(current_device()));
    return handle;
  }

  Result<void*> import_memory(const MemoryHandle& handle) override {
    come_to("import");
    SharedHandle shared{};
    std::memcpy(&shared, handle.bytes.data(), sizeof shared);
    if (const cudaError_t error = failure_of("import", cudaErrorMapBufferObjectFailed))
      return error_of("cannot import memory", error);
    void* memory = standin::import_memory(shared);
    if (memory == nullptr) return error_of("cannot import memory", cudaErrorMapBufferObjectFailed);
    note_imported(memory, find_memory(memory)->bytes);
    note_owner(memory, find_memory(memory)->bytes, handle.bytes.back());
    return memory;
  }

  void unmap_memory(void* imported) override {
    come_to("unmap");
    note_gone(imported);
    forget_owner(imported);
    release_kind(MemoryKind::kImported, imported);
  }

  Status enable_peer(int peer) override {
    come_to("enable_peer");
    if (!is_device(peer)) return error_of("cannot enable peer access", cudaErrorInvalidDevice);
    if (const cudaError_t error = failure_of("peer", cudaErrorNotSupported))
      return error_of("cannot enable peer access", error);
    return {};
  }

  Result<void*> allocate_pinned(size_t bytes) override {
    come_to("allocate_pinned");
    return allocate_kind(MemoryKind::kPinned, bytes);
  }
  void release_pinned(void* memory) override {
    come_to("release_pinned");
    release_kind(MemoryKind::kPinned, memory);
  }

  Status register_host(void* memory, size_t bytes) override {
    come_to("register");
    if (const cudaError_t error = failure_of("register", cudaErrorNotSupported))
      return error_of("cannot register host memory", error);
    Lock lock;
    if (const cudaError_t error = check_unsafe_call(lock))
      return error_of("cannot register host memory", error);
    lock.unlock();
    if (!register_memory(memory, bytes))
      return error_of("cannot register host memory", cudaErrorInvalidValue);
    note_registered(memory, bytes);
    return {};
  }
  void unregister_host(void* memory) override {
    come_to("unregister");
    note_gone(memory);
    release_kind(MemoryKind::kRegistered, memory);
  }

  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    come_to("copy");
    return status_of("cannot copy", issue(stream, [=] { std::memmove(to, from, bytes); }));
  }

  Status fill(void* to, unsigned char byte, size_t bytes, Stream stream) override {
    come_to("fill");
    return status_of("cannot fill", issue(stream, [=] { std::memset(to, byte, bytes); }));
  }

  Result<Stream> create_stream() override {
    come_to("create_stream");
    Lock lock;
    return Stream{standin::create_stream(lock, StreamKind::kNonBlocking, cudaStreamNonBlocking, 0).get()};
  }

  void destroy_stream(Stream handle) override {
    come_to("destroy_stream");
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

  Result<StreamState> state(Stream handle) override {
    Lock lock;
    const StreamRef stream = find_stream(lock, handle);
    if (stream == nullptr) return error_of("cannot look at a stream", cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = check_legacy(*stream)) return error_of("cannot look at a stream", error);
    if (stream->capture == nullptr) return StreamState{0, stream->id};
    return StreamState{stream->capture->id, 0};
  }

  int exchange_capture_mode(int mode) override { return standin::exchange_capture_mode(mode); }

  Result<Event> create_event() override {
    come_to("create_event");
    Lock lock;
    return Event{standin::create_event(lock, cudaEventDisableTiming).get()};
  }

  void destroy_event(Event event) override {
    come_to("destroy_event");
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
    come_to("record");
    Lock lock;
    return status_of("cannot record an event", record_event(lock, event, stream, cudaEventRecordDefault));
  }

  Status wait(Stream stream, Event event) override {
    come_to("wait");
    Lock lock;
    return status_of("cannot wait for an event", wait_event(lock, stream, event, cudaEventWaitDefault));
  }

  Status wait_external(Stream stream, Event event) override {
    come_to("wait_external");
    Lock lock;
    return status_of("cannot capture a wait", wait_event(lock, stream, event, cudaEventWaitExternal));
  }

  // Each call records again, which comes to the same: what waits for the event waits for the last.
  Status record_external(Event event, Stream stream, RecordPlace&) override {
    come_to("record_external");
    Lock lock;
    return status_of("cannot capture a record", record_event(lock, event, stream, cudaEventRecordExternal));
  }

  // A CPU's times say nothing about links between GPUs; a test of measuring takes them for what they are, or
  // models some.
  bool has_times() override { return models_times() || std::getenv("ONEHOP_STANDIN_TIMES") != nullptr; }
  Status begin_capture(Stream stream) override {
    come_to("begin_capture");
    return status_of("cannot capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  Result<Graph> end_capture(Stream stream) override {
    come_to("end_capture");
    cudaGraph_t graph = nullptr;
    Graph executable = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess) error = cudaGraphInstantiateWithFlags(&executable, graph, 0);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (error != cudaSuccess) return error_of("cannot make a graph", error);
    return executable;
  }
  Status launch(Graph graph, Stream stream) override {
    come_to("launch_graph");
    return status_of("cannot launch a graph", cudaGraphLaunch(graph, stream));
  }
  void destroy_graph(Graph graph) override { (void)cudaGraphExecDestroy(graph); }
  Result<Event> create_timer() override {
    Lock lock;
    return Event{standin::create_event(lock, cudaEventDefault).get()};
  }
  // As work of its own, which knows when it was done, and which what follows comes behind.
  Status record_timer(Event event, Stream stream) override {
    Lock lock;
    const EventRef timer = find_event(lock, event);
    return status_of("cannot record a timer", issue(lock, stream, [timer, stream] {
                       Lock at_replay;
                       timer->modelled_us = clock_of(stream);
                       timer->point = std::make_shared<Point>();
                       reach(at_replay, timer->point);
                     }));
  }
  Result<double> elapsed_us(Event from, Event to) override {
    float ms = 0;
    const cudaError_t error = cudaEventElapsedTime(&ms, from, to);
    if (error != cudaSuccess) return error_of("cannot tell a time", error);
    if (models_times()) return to->modelled_us - from->modelled_us;
    return ms * 1000.0;
  }

  Status load_kernels() override {
    come_to("load_kernels");
    if (const cudaError_t error = failure_of("kernels", cudaErrorNotSupported))
      return error_of("cannot load the kernels", error);
    return {};
  }

  Status launch(const CommView& comm, const Operation& operation, Stream stream) override {
    come_to("launch");
    note_launch(comm, operation);
    return status_of("cannot launch a kernel", issue(stream, [=] {
                       come_to("kernel begins");
                       run_on_host(comm, operation, tampering_for(comm).get());
                       spend(stream, comm, operation);
                       come_to("kernel ends");
                     }));
  }

 private:
  /// What a GPU would be asked for, a line each, in the file that ONEHOP_STANDIN_LAUNCHES names. Behind it
  /// the island of each rank, for the method islands.
  static void note_launch(const CommView& comm, const Operation& operation) {
    static const char* path = std::getenv("ONEHOP_STANDIN_LAUNCHES");
    if (path == nullptr) return;
    std::ostringstream line;
    line << name_of(operation.method) << " " << int{operation.most_blocks} << " x " << operation.workers;
    for (uint32_t r = 0; operation.method == Method::kIslands && r < comm.ranks; ++r)
      line << " " << int{comm.islands.island[r]};
    std::ofstream(path, std::ios::app) << line.str() << "\n";
  }

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
