// The device, as onehop needs it: the one seam between the plugin and CUDA.
//
// Two implementations: plugin/cuda/cuda_device.cpp, and the CPU stand-in (test/standin), which comes with the
// stand-in libnccl and exists for tests and the quickstart. Everything else in plugin/ is the same on both.
//
// Unless said otherwise a call works on the calling thread's current device, may be made from any thread, and
// leaves neither a sticky error nor another current device behind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/operation.hpp"
#include "plugin/result.hpp"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace onehop {

using Stream = CUstream_st*;    ///< a cudaStream_t
using Event = CUevent_st*;      ///< a cudaEvent_t
using Graph = CUgraphExec_st*;  ///< a cudaGraphExec_t

/// Which GPU this is, the same for every process that sees it, whatever CUDA_VISIBLE_DEVICES says.
struct DeviceIdentity {
  std::array<unsigned char, 16> uuid{};
  std::array<char, 16> pci{};  ///< "0000:3b:00.0", zero-terminated
  int capability = 0;          ///< compute capability, 90 for 9.0
  uint32_t multiprocessors = 1;
};

/// What a plan file tells GPUs apart by, beside the identity.
struct DeviceTraits {
  std::string model, driver;  ///< driver: what it says of itself
};

/// What another process needs to map a piece of device memory (64 bytes, opaque).
struct MemoryHandle {
  std::array<unsigned char, 64> bytes{};
};

/// Which stream a handle is at the moment, and whether it is being captured into a graph.
struct StreamState {
  uint64_t capture = 0;  ///< unique per capture; 0 while the stream is not captured
  uint64_t id = 0;       ///< unique for the life of the process, also when a handle's value is used again;
                         ///< not looked up while the stream is captured

  bool captured() const { return capture != 0; }
};

/// Where a capture's external record stands: its node, and the node that it comes behind. Only for the
/// device.
struct RecordPlace {
  void* record = nullptr;
  void* behind = nullptr;
  bool aside = false;  ///< on a branch of its own, not in the stream's line
};

class Device {
 public:
  /// Changes with every change of this class; the stand-in must have been built against the same.
  static constexpr uint32_t kInterfaceVersion = 9;

  virtual ~Device() = default;

  virtual Result<int> current() = 0;
  virtual Status set_current(int device) = 0;
  virtual Result<DeviceIdentity> identity() = 0;
  virtual Result<DeviceTraits> traits() = 0;
  /// Whether the current device reaches the one at this PCI address by more than PCIe; nothing if this
  /// process does not see that one.
  virtual std::optional<bool> is_linked(const std::array<char, 16>& pci) = 0;
  virtual Result<size_t> free_memory() = 0;

  /// Memory that peers will write. Never shares an allocation (or a mapping granule) with memory of the user.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  /// For another process; `memory` is what allocate() returned.
  virtual Result<MemoryHandle> export_memory(void* memory) = 0;
  virtual Result<void*> import_memory(const MemoryHandle& handle) = 0;
  virtual void unmap_memory(void* imported) = 0;
  /// Lets kernels of the current device use memory of `peer`, a device of this process.
  virtual Status enable_peer(int peer) = 0;
  /// Zeroed host memory that the host and kernels of every device may use at the same address.
  virtual Result<void*> allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* memory) = 0;
  /// Lets kernels of every device use whole pages of ordinary memory, at the same address.
  virtual Status register_host(void* memory, size_t bytes) = 0;
  virtual void unregister_host(void* memory) = 0;

  /// Between any two kinds of memory, in stream order. The host's side must be pinned memory.
  virtual Status copy(void* to, const void* from, size_t bytes, Stream) = 0;
  virtual Status fill(void* to, unsigned char byte, size_t bytes, Stream) = 0;

  /// A stream that does not synchronise with the legacy default stream.
  virtual Result<Stream> create_stream() = 0;
  virtual void destroy_stream(Stream) = 0;
  virtual Result<bool> finished(Stream) = 0;
  virtual Result<StreamState> state(Stream) = 0;
  /// Swaps the calling thread's stream-capture mode (a cudaStreamCaptureMode) and returns the old one.
  virtual int exchange_capture_mode(int mode) = 0;

  virtual Result<Event> create_event() = 0;
  virtual void destroy_event(Event) = 0;
  virtual Result<bool> finished(Event) = 0;
  /// As cudaEventRecord and cudaStreamWaitEvent: inside a capture they only add edges to that graph.
  virtual Status record(Event, Stream) = 0;
  virtual Status wait(Stream, Event) = 0;
  /// The stream is being captured: each replay of the graph waits for what `event` last recorded when the
  /// graph was launched ...
  virtual Status wait_external(Stream, Event) = 0;
  /// ... and records `event` when the work captured so far on this stream is done. With the `place` of an
  /// earlier record of the same capture that record is moved: the stream's work must follow what it stood
  /// behind, and a replay records once, at the end.
  virtual Status record_external(Event, Stream, RecordPlace& place) = 0;

  // For measuring.
  /// Whether times say anything about the node.
  virtual bool has_times() { return true; }
  /// What is enqueued on `stream` between the two becomes a graph, whatever else is being captured.
  virtual Status begin_capture(Stream) = 0;
  virtual Result<Graph> end_capture(Stream) = 0;
  virtual Status launch(Graph, Stream) = 0;
  virtual void destroy_graph(Graph) = 0;
  /// An event that knows its time; recorded by the graph that is being captured on `stream`, in the stream's
  /// order.
  virtual Result<Event> create_timer() = 0;
  virtual Status record_timer(Event, Stream) = 0;
  virtual Result<double> elapsed_us(Event from, Event to) = 0;

  /// Loads every kernel that launch() can start on the current device: loading one inside a collective can
  /// deadlock.
  virtual Status load_kernels() = 0;
  /// Enqueues one all-reduce kernel. On the call path: no allocation, no lock.
  virtual Status launch(const CommView&, const Operation&, Stream) = 0;
};

/// A libnccl image that exports a function of this name (and type) is the stand-in and brings its own device.
inline constexpr char kStandinDeviceSymbol[] = "onehop_standin_device";
using StandinDeviceFunction =
    Device* (*)(uint32_t interface_version);  ///< null: built against another version

}  // namespace onehop
