#include <chrono>

#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

using namespace std::chrono_literals;

ncclResult_t wait_until_ready(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress) {
    std::this_thread::sleep_for(1ms);
  }
  return state;
}

TEST(NonBlocking, InitIsInProgressUntilAllRanksCame) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(2, [&](int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    if (rank == 1) std::this_thread::sleep_for(50ms);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress);
    ASSERT_NE(comm, nullptr);
    if (rank == 0) {
      int count = 0;
      EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
    }
    EXPECT_NCCL(wait_until_ready(comm));
    TestStream stream;
    DeviceArray<int> array(1, 4);
    EXPECT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, stream));
    stream.synchronize();
    EXPECT_EQ(array[0], 8);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
    EXPECT_NCCL(wait_until_ready(comm));
    EXPECT_NCCL(ncclCommDestroy(comm));
  });
}

TEST(NonBlocking, InitCanBeAborted) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  EXPECT_NCCL(ncclCommAbort(comm));
}

TEST(Abort, FreesOperationsThatWaitForAPeer) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_NCCL(ncclCommInitRank(&comm, 2, id, rank));
    if (rank == 1) {  // never takes part
      EXPECT_NCCL(ncclCommDestroy(comm));
      return;
    }
    TestStream stream;
    DeviceArray<int> array(1);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, stream));
    ASSERT_NCCL(ncclRecv(array.data(), 1, ncclInt, 1, comm, stream));
    std::thread aborter([&] {
      std::this_thread::sleep_for(20ms);
      EXPECT_NCCL(ncclCommAbort(comm));
    });
    stream.synchronize();
    aborter.join();
  });
}

TEST(Revoke, StopsOperationsAndRefusesNewOnes) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr, child = nullptr;
    ASSERT_NCCL(ncclCommInitRank(&comm, 2, id, rank));
    TestStream stream;
    DeviceArray<int> array(1, 1);
    int* data = array.data();
    if (rank == 0) {
      ASSERT_NCCL(ncclAllReduce(data, data, 1, ncclInt, ncclSum, comm, stream));
    }
    EXPECT_EQ(ncclCommRevoke(comm, 1), ncclInvalidArgument);
    EXPECT_NCCL(ncclCommRevoke(comm, 0));
    stream.synchronize();
    EXPECT_EQ(ncclAllReduce(data, data, 1, ncclInt, ncclSum, comm, stream), ncclInvalidUsage);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidUsage);
    ASSERT_NCCL(ncclCommSplit(comm, 0, rank, &child, nullptr));
    ASSERT_NCCL(ncclAllReduce(data, data, 1, ncclInt, ncclSum, child, stream));
    stream.synchronize();
    EXPECT_EQ(array[0], 2);
    EXPECT_NCCL(ncclCommDestroy(child));
    EXPECT_NCCL(ncclCommDestroy(comm));
  });
}

TEST(Destroy, GivesTheAddressBack) {
  ncclUniqueId id;
  ncclComm_t first = nullptr, second = nullptr;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  ASSERT_NCCL(ncclCommInitRank(&first, 1, id, 0));
  EXPECT_NCCL(ncclCommDestroy(first));
  ASSERT_NCCL(ncclGetUniqueId(&id));
  ASSERT_NCCL(ncclCommInitRank(&second, 1, id, 0));
  EXPECT_EQ(first, second);
  EXPECT_NCCL(ncclCommDestroy(second));
  EXPECT_NCCL(ncclCommDestroy(nullptr));
}

TEST(Split, MakesACommunicatorPerColor) {
  with_communicator(4, [](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    const int color = rank == 3 ? NCCL_SPLIT_NOCOLOR : rank % 2;
    ASSERT_NCCL(ncclCommSplit(comm, color, -rank, &child, nullptr));
    if (rank == 3) {
      EXPECT_EQ(child, nullptr);
      return;
    }
    int count = 0, child_rank = -1;
    EXPECT_NCCL(ncclCommCount(child, &count));
    EXPECT_NCCL(ncclCommUserRank(child, &child_rank));
    EXPECT_EQ(count, rank == 1 ? 1 : 2);
    EXPECT_EQ(child_rank, rank == 0 ? 1 : 0);
    EXPECT_NCCL(ncclCommDestroy(child));
  });
}

TEST(Shrink, LeavesRanksOut) {
  with_communicator(3, [](int rank, ncclComm_t comm) {
    if (rank == 1) return;
    TestStream stream;
    DeviceArray<int> array(1, 1);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, stream));
    int excluded[] = {1};
    ncclComm_t child = nullptr;
    ASSERT_NCCL(ncclCommShrink(comm, excluded, 1, &child, nullptr, NCCL_SHRINK_ABORT));
    stream.synchronize();
    array.set(1);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, child, stream));
    stream.synchronize();
    EXPECT_EQ(array[0], 2);
    EXPECT_NCCL(ncclCommDestroy(child));
  });
}

TEST(Shrink, LeavesTheParentUsable) {
  with_communicator(3, [](int rank, ncclComm_t comm) {
    int excluded[] = {1};
    ncclComm_t child = nullptr, second = nullptr;
    if (rank != 1) {
      ASSERT_NCCL(ncclCommShrink(comm, excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
      EXPECT_NCCL(ncclCommDestroy(child));
    }
    ASSERT_NCCL(ncclCommSplit(comm, 0, rank, &second, nullptr));
    int count = 0;
    EXPECT_NCCL(ncclCommCount(second, &count));
    EXPECT_EQ(count, 3);
    EXPECT_NCCL(ncclCommDestroy(second));
  });
}

TEST(Destroy, WaitsForOperations) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_NCCL(ncclCommInitRank(&comm, 2, id, rank));
    TestStream stream;
    DeviceArray<int> array(1, 1);
    if (rank == 1) std::this_thread::sleep_for(20ms);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, stream));
    EXPECT_NCCL(ncclCommDestroy(comm));
    EXPECT_EQ(array[0], 2);
  });
}

TEST(Init, RefusesTwoRanksOnOneDevice) {
  ncclUniqueId id;
  ASSERT_NCCL(ncclGetUniqueId(&id));
  run_ranks(2, [&](int rank) {
    ASSERT_CUDA(cudaSetDevice(0));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclInvalidUsage);
    EXPECT_NCCL(ncclCommAbort(comm));
  });
}

}  // namespace
}  // namespace onehop::standin
