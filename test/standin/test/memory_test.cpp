#include <cstring>
#include <set>
#include <string>

#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

TEST(Devices, AreEightWithIdentities) {
  int count = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 8);
  std::set<std::string> uuids, addresses;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    char address[16];
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, device));
    ASSERT_CUDA(cudaDeviceGetPCIBusId(address, sizeof address, device));
    uuids.insert(std::string(properties.uuid.bytes, sizeof properties.uuid.bytes));
    addresses.insert(address);
  }
  EXPECT_EQ(uuids.size(), 8u);
  EXPECT_EQ(addresses.size(), 8u);
}

TEST(Devices, CurrentOneIsPerThread) {
  ASSERT_CUDA(cudaSetDevice(3));
  int device = -1;
  std::thread([&] { EXPECT_CUDA(cudaGetDevice(&device)); }).join();
  EXPECT_EQ(device, 0);
  ASSERT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 3);
  EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(Memory, KnowsItsKinds) {
  DeviceArray<int> array(4);
  cudaPointerAttributes attributes;
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, array.data() + 1));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  void* pinned = nullptr;
  ASSERT_CUDA(cudaMallocHost(&pinned, 100));
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  int local = 0;
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, &local));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeHost(pinned));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(nullptr));
}

TEST(Memory, CopiesPageableMemoryBeforeTheCallReturns) {
  TestStream stream;
  DeviceArray<int> array(1000);
  std::vector<int> values(1000, 7);
  ASSERT_CUDA(cudaMemcpyAsync(array.data(), values.data(), 4000, cudaMemcpyHostToDevice, stream));
  std::fill(values.begin(), values.end(), 0);
  stream.synchronize();
  EXPECT_EQ(array[999], 7);
  ASSERT_CUDA(cudaMemcpyAsync(values.data(), array.data(), 4000, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(values[999], 7);
}

TEST(Memory, IsSharedByHandle) {
  DeviceArray<int> array(1000, 5);
  cudaIpcMemHandle_t handle;
  ASSERT_CUDA(cudaIpcGetMemHandle(&handle, array.data()));
  int* other = nullptr;
  ASSERT_CUDA(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&other), handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_NE(other, array.data());
  EXPECT_EQ(other[999], 5);
  other[0] = 6;
  EXPECT_EQ(array[0], 6);
  EXPECT_CUDA(cudaIpcCloseMemHandle(other));
}

TEST(Memory, HandleOfFreedMemoryIsRefused) {
  cudaIpcMemHandle_t handle;
  {
    DeviceArray<int> array(10);
    ASSERT_CUDA(cudaIpcGetMemHandle(&handle, array.data()));
  }
  DeviceArray<int> reuses_the_descriptor(10);
  void* other = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&other, handle, 0), cudaErrorMapBufferObjectFailed);
  cudaGetLastError();
}

}  // namespace
}  // namespace onehop::standin
