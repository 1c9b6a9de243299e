#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

TEST(Groups, OfOneThreadDriveSeveralDevices) {
  constexpr int kRanks = 3;
  ncclComm_t comms[kRanks];
  ASSERT_NCCL(ncclCommInitAll(comms, kRanks, nullptr));
  std::vector<std::unique_ptr<TestStream>> streams;
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays;
  for (int rank = 0; rank < kRanks; ++rank) {
    int count = 0, device = -1, user_rank = -1;
    EXPECT_NCCL(ncclCommCount(comms[rank], &count));
    EXPECT_NCCL(ncclCommCuDevice(comms[rank], &device));
    EXPECT_NCCL(ncclCommUserRank(comms[rank], &user_rank));
    EXPECT_EQ(count, kRanks);
    EXPECT_EQ(device, rank);
    EXPECT_EQ(user_rank, rank);
    ASSERT_CUDA(cudaSetDevice(rank));
    streams.push_back(std::make_unique<TestStream>());
    arrays.push_back(std::make_unique<DeviceArray<float>>(10, 1.0f));
  }
  ASSERT_NCCL(ncclGroupStart());
  for (int i = 0; i < 2; ++i) {
    for (int rank = 0; rank < kRanks; ++rank) {
      float* data = arrays[rank]->data();
      ASSERT_NCCL(ncclAllReduce(data, data, 10, ncclFloat, ncclSum, comms[rank], *streams[rank]));
    }
  }
  ASSERT_NCCL(ncclGroupEnd());
  for (int rank = 0; rank < kRanks; ++rank) {
    streams[rank]->synchronize();
    EXPECT_EQ((*arrays[rank])[9], 9.0f);
    EXPECT_NCCL(ncclCommDestroy(comms[rank]));
  }
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(Groups, MakeCommunicatorsOfOneThread) {
  ncclUniqueId id;
  ncclComm_t comms[2];
  ASSERT_NCCL(ncclGetUniqueId(&id));
  ASSERT_NCCL(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_CUDA(cudaSetDevice(rank));
    ASSERT_NCCL(ncclCommInitRank(&comms[rank], 2, id, rank));
  }
  ASSERT_NCCL(ncclGroupEnd());
  ASSERT_NCCL(ncclGroupStart());
  for (ncclComm_t comm : comms) EXPECT_NCCL(ncclCommDestroy(comm));
  ASSERT_NCCL(ncclGroupEnd());
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(Groups, EndOnlyWhatWasStarted) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_NCCL(ncclGroupStart());
  EXPECT_NCCL(ncclGroupStart());
  EXPECT_NCCL(ncclGroupEnd());
  EXPECT_NCCL(ncclGroupEnd());
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Groups, NothingRunsBeforeTheOutermostEnd) {
  with_communicator(1, [](int, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<int> from(1, 5), to(1);
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, stream));
    ASSERT_NCCL(ncclGroupEnd());
    stream.synchronize();
    EXPECT_EQ(to[0], 0);
    ASSERT_NCCL(ncclGroupEnd());
    stream.synchronize();
    EXPECT_EQ(to[0], 5);
  });
}

TEST(Groups, WithAnErrorAreDropped) {
  with_communicator(1, [](int, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<int> from(1, 5), to(1);
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, stream));
    EXPECT_EQ(ncclAllReduce(from.data(), to.data(), 1, ncclNumTypes, ncclSum, comm, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    stream.synchronize();
    EXPECT_EQ(to[0], 0);
    // So does a bad handle, as seen of 2.28.9 and 2.30.7.
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, stream));
    EXPECT_EQ(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, nullptr, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    stream.synchronize();
    EXPECT_EQ(to[0], 0);
  });
}

TEST(Groups, StayInOneCapture) {
  with_communicator(1, [](int, ncclComm_t comm) {
    TestStream stream, other;
    DeviceArray<int> from(1, 5), to(1);
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, stream));
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, other));
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cudaGraphDestroy(graph));
  });
}

TEST(Groups, SimulationRunsNothing) {
  with_communicator(1, [](int, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<int> from(1, 5), to(1);
    ncclSimInfo_t simulation = NCCL_SIM_INFO_INITIALIZER;
    EXPECT_EQ(ncclGroupSimulateEnd(&simulation), ncclInvalidUsage);
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclAllReduce(from.data(), to.data(), 1, ncclInt, ncclSum, comm, stream));
    EXPECT_NCCL(ncclGroupSimulateEnd(&simulation));
    stream.synchronize();
    EXPECT_EQ(to[0], 0);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST(Arguments, AreChecked) {
  with_communicator(1, [](int, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<int> array(4, 3);
    int* data = array.data();
    EXPECT_EQ(ncclAllReduce(data, data, 1, ncclInt, ncclNumOps, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclBroadcast(data, data, 1, ncclInt, 1, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data, 1, ncclInt, -1, comm, stream), ncclInvalidArgument);
    EXPECT_NCCL(ncclAllReduce(nullptr, nullptr, 0, ncclInt, ncclSum, comm, stream));
    uint64_t not_a_comm[8] = {};
    EXPECT_EQ(
        ncclAllReduce(data, data, 1, ncclInt, ncclSum, reinterpret_cast<ncclComm_t>(not_a_comm), stream),
        ncclInvalidArgument);
    stream.synchronize();
    EXPECT_EQ(array[0], 3);
  });
}

TEST(Names, AreTwoForOneFunction) {
  EXPECT_EQ(reinterpret_cast<void*>(&ncclAllReduce), reinterpret_cast<void*>(&pncclAllReduce));
  EXPECT_EQ(reinterpret_cast<void*>(&ncclGroupEnd), reinterpret_cast<void*>(&pncclGroupEnd));
  int version = 0;
  EXPECT_NCCL(ncclGetVersion(&version));
  EXPECT_EQ(version, 22809);
}

}  // namespace
}  // namespace onehop::standin
