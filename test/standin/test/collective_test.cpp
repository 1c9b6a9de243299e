#include <cmath>
#include <cstring>

#include "test/standin/test/support.hpp"

namespace onehop::standin {
namespace {

constexpr int kRanks = 4;
constexpr size_t kLarge = 200'000;  // several chunks

TEST(AllReduce, SumsEveryTypeAndSize) {
  with_communicator(kRanks, [](int rank, ncclComm_t comm) {
    TestStream stream;
    for (size_t count : {size_t{1}, size_t{1000}, kLarge}) {
      DeviceArray<float> floats(count, static_cast<float>(rank + 1));
      DeviceArray<int64_t> integers(count, rank - 7), received(count);
      ASSERT_NCCL(ncclAllReduce(floats.data(), floats.data(), count, ncclFloat32, ncclSum, comm, stream));
      ASSERT_NCCL(ncclAllReduce(integers.data(), received.data(), count, ncclInt64, ncclSum, comm, stream));
      stream.synchronize();
      EXPECT_EQ(floats[0], 10.0f);
      EXPECT_EQ(floats[count - 1], 10.0f);
      EXPECT_EQ(received[count - 1], -22);
      EXPECT_EQ(integers[count - 1], rank - 7);
    }
  });
}

template <class T>
void expect_reductions(ncclDataType_t type, int rank, ncclComm_t comm, cudaStream_t stream) {
  const float expected[] = {10, 24, 4, 1, 2.5};
  for (int op = ncclSum; op <= ncclAvg; ++op) {
    DeviceArray<T> array(3, T(static_cast<float>(rank + 1)));
    ASSERT_NCCL(
        ncclAllReduce(array.data(), array.data(), 3, type, static_cast<ncclRedOp_t>(op), comm, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    const bool floating = !std::is_integral_v<T>;
    EXPECT_EQ(static_cast<float>(array[2]), floating ? expected[op] : std::floor(expected[op]))
        << "type " << type << " op " << op;
  }
}

TEST(AllReduce, KnowsEveryTypeAndOperation) {
  with_communicator(kRanks, [](int rank, ncclComm_t comm) {
    TestStream stream;
    expect_reductions<int8_t>(ncclInt8, rank, comm, stream);
    expect_reductions<uint8_t>(ncclUint8, rank, comm, stream);
    expect_reductions<int32_t>(ncclInt32, rank, comm, stream);
    expect_reductions<uint32_t>(ncclUint32, rank, comm, stream);
    expect_reductions<int64_t>(ncclInt64, rank, comm, stream);
    expect_reductions<uint64_t>(ncclUint64, rank, comm, stream);
    expect_reductions<__half>(ncclFloat16, rank, comm, stream);
    expect_reductions<__nv_bfloat16>(ncclBfloat16, rank, comm, stream);
    expect_reductions<float>(ncclFloat32, rank, comm, stream);
    expect_reductions<double>(ncclFloat64, rank, comm, stream);
    expect_reductions<__nv_fp8_e4m3>(ncclFloat8e4m3, rank, comm, stream);
    expect_reductions<__nv_fp8_e5m2>(ncclFloat8e5m2, rank, comm, stream);
  });
}

TEST(AllReduce, TakesOperationsOfTheProgram) {
  with_communicator(2, [](int rank, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<float> array(5, static_cast<float>(rank + 1)), factor(1, 10.0f);
    ncclRedOp_t op;
    ASSERT_NCCL(ncclRedOpCreatePreMulSum(&op, factor.data(), ncclFloat32, ncclScalarDevice, comm));
    EXPECT_EQ(ncclAllReduce(array.data(), array.data(), 5, ncclFloat64, op, comm, stream),
              ncclInvalidArgument);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 5, ncclFloat32, op, comm, stream));
    ASSERT_NCCL(ncclRedOpDestroy(op, comm));
    EXPECT_EQ(ncclAllReduce(array.data(), array.data(), 5, ncclFloat32, op, comm, stream),
              ncclInvalidArgument);
    stream.synchronize();
    EXPECT_EQ(array[4], 30.0f);
  });
}

TEST(Collectives, MoveWhatTheyShould) {
  with_communicator(kRanks, [](int rank, ncclComm_t comm) {
    TestStream stream;
    const size_t count = 40'000;
    DeviceArray<int> part(count, rank), whole(count * kRanks), spread(count * kRanks);
    ASSERT_NCCL(ncclAllGather(part.data(), whole.data(), count, ncclInt, comm, stream));
    stream.synchronize();
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_EQ(whole[r * count], r);
      EXPECT_EQ(whole[(r + 1) * count - 1], r);
    }
    ASSERT_NCCL(ncclReduceScatter(whole.data(), part.data(), count, ncclInt, ncclSum, comm, stream));
    stream.synchronize();
    EXPECT_EQ(part[count - 1], rank * kRanks);
    part.set(rank);
    ASSERT_NCCL(ncclReduce(part.data(), part.data(), count, ncclInt, ncclSum, 2, comm, stream));
    stream.synchronize();
    EXPECT_EQ(part[count - 1], rank == 2 ? 6 : rank);
    ASSERT_NCCL(ncclBroadcast(part.data(), part.data(), count, ncclInt, 2, comm, stream));
    ASSERT_NCCL(ncclBcast(part.data(), count, ncclInt, 1, comm, stream));
    stream.synchronize();
    EXPECT_EQ(part[count - 1], 6);
    for (int r = 0; r < kRanks; ++r) whole[r * count] = 10 * rank + r;
    ASSERT_NCCL(ncclAlltoAll(whole.data(), spread.data(), count, ncclInt, comm, stream));
    stream.synchronize();
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(spread[r * count], 10 * r + rank);
    ASSERT_NCCL(ncclScatter(whole.data(), part.data(), count, ncclInt, 3, comm, stream));
    ASSERT_NCCL(ncclGather(part.data(), spread.data(), count, ncclInt, 0, comm, stream));
    stream.synchronize();
    EXPECT_EQ(part[0], 30 + rank);
    if (rank == 0) {
      EXPECT_EQ(spread[3 * count], 33);
    }
  });
}

TEST(SendAndReceive, GoRoundARing) {
  with_communicator(kRanks, [](int rank, ncclComm_t comm) {
    TestStream stream, other;
    DeviceArray<int> to(kLarge, rank), from(kLarge), self(10, 77), same(10);
    ASSERT_NCCL(ncclGroupStart());
    ASSERT_NCCL(ncclSend(to.data(), kLarge, ncclInt, (rank + 1) % kRanks, comm, stream));
    ASSERT_NCCL(ncclRecv(from.data(), kLarge, ncclInt, (rank + kRanks - 1) % kRanks, comm, other));
    ASSERT_NCCL(ncclSend(self.data(), 10, ncclInt, rank, comm, stream));
    ASSERT_NCCL(ncclRecv(same.data(), 10, ncclInt, rank, comm, stream));
    ASSERT_NCCL(ncclGroupEnd());
    other.synchronize();
    EXPECT_EQ(from[0], (rank + kRanks - 1) % kRanks);
    EXPECT_EQ(from[kLarge - 1], (rank + kRanks - 1) % kRanks);
    EXPECT_EQ(same[9], 77);
  });
}

TEST(Order, IsThatOfTheCallsWhateverTheStreams) {
  with_communicator(2, [](int rank, ncclComm_t comm) {
    TestStream streams[3];
    DeviceArray<int> array(1, 1);
    // Each operation doubles what the one before, on another stream, left.
    for (int i = 0; i < 20; ++i) {
      ASSERT_NCCL(
          ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, streams[(i + rank) % 3]));
    }
    for (const TestStream& stream : streams) stream.synchronize();
    EXPECT_EQ(array[0], 1 << 20);
  });
}

TEST(Order, HoldsBetweenGraphsAndEagerCalls) {
  with_communicator(2, [](int rank, ncclComm_t comm) {
    TestStream stream, other;
    DeviceArray<int> array(1, 1);
    const auto doubles = [&](cudaStream_t where) {
      ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 1, ncclInt, ncclSum, comm, where));
    };
    TestEvent fork, join;
    const cudaGraphExec_t graph = capture(stream, [&] {
      doubles(stream);
      EXPECT_CUDA(cudaEventRecord(fork, stream));
      EXPECT_CUDA(cudaStreamWaitEvent(other, fork, 0));
      doubles(other);
      doubles(stream);
      EXPECT_CUDA(cudaEventRecord(join, other));
      EXPECT_CUDA(cudaStreamWaitEvent(stream, join, 0));
    });
    for (int i = 0; i < 4; ++i) {
      EXPECT_CUDA(cudaGraphLaunch(graph, rank == 0 ? stream : other));
      doubles(rank == 0 ? other : stream);
    }
    stream.synchronize();
    other.synchronize();
    EXPECT_EQ(array[0], 1 << 16);
    EXPECT_CUDA(cudaGraphExecDestroy(graph));
  });
}

TEST(Mismatch, OfOperationsIsAnError) {
  with_communicator(2, [](int rank, ncclComm_t comm) {
    TestStream stream;
    DeviceArray<int> array(100);
    ASSERT_NCCL(ncclAllReduce(array.data(), array.data(), 10 + rank, ncclInt, ncclSum, comm, stream));
    stream.synchronize();
    ncclResult_t state = ncclSuccess;
    ASSERT_NCCL(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclInternalError);
  });
}

}  // namespace
}  // namespace onehop::standin
