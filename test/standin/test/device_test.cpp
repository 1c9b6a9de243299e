// onehop's device on the stand-in, found as the plugin finds it.

#include "plugin/device.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "kernels/protocol/state.hpp"
#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

Device& device() {
  void* libnccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  const auto find = reinterpret_cast<StandinDeviceFunction>(dlsym(libnccl, kStandinDeviceSymbol));
  EXPECT_EQ(find(Device::kInterfaceVersion + 1), nullptr);
  return *find(Device::kInterfaceVersion);
}

TEST(CpuDevice, SharesMemory) {
  void* const memory = *device().allocate(4096);
  const Result<MemoryHandle> handle = device().export_memory(memory);
  ASSERT_TRUE(handle);
  void* const other = *device().import_memory(*handle);
  static_cast<int*>(memory)[7] = 8;
  EXPECT_EQ(static_cast<int*>(other)[7], 8);
  device().unmap_memory(other);
  device().release(memory);
  EXPECT_FALSE(device().import_memory(*handle));
}

/// Whole pages of the program's own memory, once each.
TEST(CpuDevice, RegistersHostMemory) {
  constexpr size_t kBytes = 8192;
  void* const memory = std::aligned_alloc(4096, kBytes);
  ASSERT_TRUE(device().register_host(memory, kBytes));
  EXPECT_FALSE(device().register_host(memory, kBytes)) << "twice";
  cudaPointerAttributes attributes{};
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, memory));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  device().unregister_host(memory);
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, memory));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_TRUE(device().register_host(memory, kBytes));
  device().unregister_host(memory);
  std::free(memory);
}

TEST(CpuDevice, FailsWhereATestSaysSo) {
  void* const memory = *device().allocate(4096);
  const MemoryHandle handle = *device().export_memory(memory);
  alignas(4096) static unsigned char page[4096];
  const std::pair<const char*, std::function<bool()>> calls[] = {
      {"allocate",
       [&] {
         const Result<void*> made = device().allocate(4096);
         if (made) device().release(*made);
         return static_cast<bool>(made);
       }},
      {"import",
       [&] {
         const Result<void*> made = device().import_memory(handle);
         if (made) device().unmap_memory(*made);
         return static_cast<bool>(made);
       }},
      {"peer", [&] { return static_cast<bool>(device().enable_peer(1)); }},
      {"register",
       [&] {
         const bool registered = static_cast<bool>(device().register_host(page, sizeof(page)));
         if (registered) device().unregister_host(page);
         return registered;
       }},
      {"kernels", [&] { return static_cast<bool>(device().load_kernels()); }},
  };
  const auto expect = [&](const std::string& setting, const std::string& failing) {
    setenv("ONEHOP_STANDIN_FAIL", setting.c_str(), 1);
    for (const auto& [name, call] : calls) EXPECT_EQ(call(), name != failing) << name << " with " << setting;
  };
  for (const auto& each : calls) {
    const std::string name = each.first;
    for (const std::string& setting : {name, "x," + name, name + ",x", "," + name + ","})
      expect(setting, name);
    for (const std::string& setting : {name + "x", "x" + name, name + " "}) expect(setting, "");
  }
  unsetenv("ONEHOP_STANDIN_FAIL");
  for (const auto& [name, call] : calls) EXPECT_TRUE(call()) << name;
  device().release(memory);
}

TEST(CpuDevice, UsesTheStreamsOfTheProgram) {
  TestStream stream;
  const Result<Stream> own = device().create_stream();
  const Result<Event> event = device().create_event();
  DeviceArray<char> array(10);
  Gate gate;
  gate.close_on(stream);
  ASSERT_TRUE(device().record(*event, stream));
  ASSERT_TRUE(device().wait(*own, *event));
  ASSERT_TRUE(device().fill(array.data(), 3, 10, *own));
  EXPECT_FALSE(*device().finished(*own));
  EXPECT_FALSE(*device().finished(*event));
  gate.open();
  stream.synchronize();
  while (!*device().finished(*own)) std::this_thread::yield();
  EXPECT_EQ(array[9], 3);
  EXPECT_NE(device().state(stream)->id, device().state(*own)->id);
  device().destroy_event(*event);
  device().destroy_stream(*own);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CpuDevice, CapturesExternalEvents) {
  TestStream stream;
  const Result<Event> event = device().create_event();
  DeviceArray<char> array(1);
  EXPECT_FALSE(device().state(stream)->captured());
  const cudaGraphExec_t graph = capture(
      stream,
      [&] {
        EXPECT_TRUE(device().state(stream)->captured());
        EXPECT_TRUE(device().wait_external(stream, *event));
        EXPECT_TRUE(device().fill(array.data(), 1, 1, stream));
        RecordPlace place;
        EXPECT_TRUE(device().record_external(*event, stream, place));
      },
      cudaStreamCaptureModeRelaxed);
  device().destroy_event(*event);
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  stream.synchronize();
  EXPECT_EQ(array[0], 1);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
}

TEST(CpuDevice, RunsKernels) {
  constexpr uint32_t kRanks = 2;
  CommView views[kRanks];
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    views[rank].rank = rank;
    views[rank].ranks = kRanks;
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    CommView& view = views[rank];
    view.layout = {kRanks, 16, 0};
    view.state = new (*device().allocate(sizeof(State))) State;
    view.state->turn = first_turn();
    view.control = static_cast<Control*>(*device().allocate_pinned(sizeof(Control)));
    auto* staging = static_cast<unsigned char*>(*device().allocate(view.layout.bytes()));
    std::memset(staging, 0xff, view.layout.sentinel_bytes());
    for (CommView& other : views) other.staging(rank) = staging;
  }
  TestStream streams[kRanks];
  DeviceArray<float> arrays[kRanks] = {DeviceArray<float>(20, 1.0f), DeviceArray<float>(20, 2.0f)};
  for (int i = 0; i < 4; ++i) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      float* data = arrays[rank].data();
      ASSERT_TRUE(device().launch(views[rank], {data, data, 20, Element::kFloat32}, streams[rank]));
    }
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    streams[rank].synchronize();
    EXPECT_EQ(arrays[rank][19], 24.0f);
    device().release(views[rank].state);
    device().release(views[rank].own);
    device().release_pinned(views[rank].control);
  }
}

}  // namespace
}  // namespace onehop::standin
