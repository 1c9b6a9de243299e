// Reductions of every type, operator, size and alignment; and the calls that are not onehop's.
#include <cstring>
#include <sstream>

#include "test/node/rank/device.hpp"
#include "test/node/rank/elements.hpp"

namespace onehop::node {
namespace {

constexpr size_t kLimit = 64 * 1024;  ///< of a call, in bytes: ONEHOP_MAX_BYTES of most of these jobs

/// One call of a batch: elements `first` .. `first + count` of the batch's arrays.
struct Piece {
  size_t first, count;
};

/// Small counts, then those around the limit. A free element between pieces shows writes that go too far.
std::vector<Piece> pieces_for(const ElementType& type, size_t limit_bytes, size_t step, bool few_large) {
  std::vector<size_t> counts;
  for (size_t count = 1; count <= 300; count += step) counts.push_back(count);
  const size_t limit = limit_bytes / type.bytes;
  counts.insert(counts.end(), {limit, limit + 1});
  if (!few_large) counts.insert(counts.end(), {limit / 2 + 1, limit - 1, 2 * limit + 3});
  std::vector<Piece> pieces;
  size_t first = 1;
  for (const size_t count : counts) {
    pieces.push_back({first, count});
    first += count + 1;
  }
  return pieces;
}

bool is_taken(const ElementType& type, size_t limit, const Piece& piece) {
  return piece.count * type.bytes <= limit;
}

/// All pieces at once, on a stream: in place on some ranks, out of place on others, aligned to the element
/// only.
Bytes reduce_batch(const Rank& self, const ElementType& type, ncclRedOp_t op,
                   const std::vector<Piece>& pieces, const std::vector<Bytes>& inputs, ncclComm_t comm,
                   const Stream& stream) {
  const size_t bytes = inputs[0].size();
  // The senders' arrays begin at another place on every rank.
  const size_t shift = static_cast<size_t>(self.rank % 4) * type.bytes;
  const Array<unsigned char> send(bytes + shift), receive(bytes);
  const auto& mine = inputs[static_cast<size_t>(self.rank)];
  MUST(cudaMemcpyAsync(send.data() + shift, mine.data(), bytes, cudaMemcpyHostToDevice, stream));
  MUST(cudaMemsetAsync(receive.data(), 0xA5, bytes, stream));
  for (size_t p = 0; p < pieces.size(); ++p) {
    const size_t offset = pieces[p].first * type.bytes, length = pieces[p].count * type.bytes;
    const void* from = send.data() + shift + offset;
    if ((p + static_cast<size_t>(self.rank)) % 2 == 0) {
      MUST(cudaMemcpyAsync(receive.data() + offset, from, length, cudaMemcpyDeviceToDevice, stream));
      from = receive.data() + offset;
    }
    MUST(ncclAllReduce(from, receive.data() + offset, pieces[p].count, type.type, op, comm, stream));
    // The program may use its input again as soon as the call is done in the stream's order.
    MUST(cudaMemsetAsync(send.data() + shift + offset, 0x5A, length, stream));
  }
  stream.synchronize();
  return receive.read();
}

/// This rank's share of every result: that the results are the same everywhere is checked too.
void check_pieces(const Rank& self, const ElementType& type, const Operator& op, size_t limit,
                  const std::vector<Piece>& pieces, const std::vector<Bytes>& inputs, const Bytes& got) {
  for (const Piece& piece : pieces) {
    // NCCL's average of floating-point numbers is another: it scales before it adds.
    const bool other = op.op == ncclAvg && type.floating && !is_taken(type, limit, piece);
    const auto rank = static_cast<size_t>(self.rank), ranks = static_cast<size_t>(self.ranks);
    const size_t from = piece.count * rank / ranks, to = piece.count * (rank + 1) / ranks;
    must(other || holds_reduction(type, op.op, got, inputs, piece.first + from, to - from),
         std::string("wrong ") + op.name + " of " + std::to_string(piece.count) + " " + type.name);
    for (const size_t guard : {piece.first - 1, piece.first + piece.count})
      for (size_t b = 0; b < type.bytes; ++b)
        must(got[guard * type.bytes + b] == 0xA5, "a write beside the result");
  }
}

/// Every rank's hash, from every rank.
void must_be_equal_everywhere(uint64_t hash, int ranks, ncclComm_t comm, const Stream& stream) {
  Array<uint64_t> mine(1, hash), all(static_cast<size_t>(ranks));
  MUST(ncclAllGather(mine.data(), all.data(), 1, ncclUint64, comm, stream));
  stream.synchronize();
  must(all.holds(hash), "the results have other bits on another rank");
}

}  // namespace

/// Every type with every operator. Argument: the step between the small counts of sums (of others it is
/// greater), and ONEHOP_MAX_BYTES if that is not 64 KiB.
SCENARIO(reductions) {
  const ncclComm_t comm = self.join();
  size_t step = 0, limit = kLimit;
  std::istringstream(self.argument) >> step >> limit;
  {
    const Stream stream;
    uint64_t hash = 0xCBF29CE484222325;
    for (const ElementType& type : all_types())
      for (const Operator& op : all_operators()) {
        // Counts are the protocol's, which does not know the operator.
        const bool few = op.op != ncclSum;
        const std::vector<Piece> pieces = pieces_for(type, limit, few ? 13 * step : step, few);
        std::vector<Bytes> inputs;
        for (int r = 0; r < self.ranks; ++r)
          inputs.push_back(random_inputs(type, pieces.back().first + pieces.back().count + 1,
                                         static_cast<uint64_t>((r * 100 + type.type) * 10 + op.op)));
        const Bytes got = reduce_batch(self, type, op.op, pieces, inputs, comm, stream);
        check_pieces(self, type, op, limit, pieces, inputs, got);
        add_to_hash(hash, got.data(), got.size());
        for (const Piece& piece : pieces) self.expect(is_taken(type, limit, piece) ? "taken" : "size");
      }
    must_be_equal_everywhere(hash, self.ranks, comm, stream);
  }
  MUST(ncclCommDestroy(comm));
}

/// Calls that belong to NCCL, each counted under its reason; the first of them makes the ranks set up.
SCENARIO(others) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    const auto n = static_cast<float>(self.ranks);
    const auto reduce = [&](ncclRedOp_t op, float expected, const char* reason) {
      Array<float> data(100, static_cast<float>(self.rank + 1));
      MUST(ncclAllReduce(data.data(), data.data(), 100, ncclFloat, op, comm, stream));
      stream.synchronize();
      must(data.holds(expected), std::string("wrong result of a call that is counted as ") + reason);
      self.expect(reason);
    };
    Array<float> nothing(1, 7.0f);
    // Before set-up nothing is known of an empty call; it must not start one.
    MUST(ncclAllReduce(nothing.data(), nothing.data(), 0, ncclFloat, ncclSum, comm, stream));
    self.expect("not_inspected");
    ncclRedOp_t halves = ncclSum, doubles = ncclSum;
    float half = 0.5f;
    const Array<float> two(1, 2.0f);
    MUST(ncclRedOpCreatePreMulSum(&halves, &half, ncclFloat, ncclScalarHostImmediate, comm));
    MUST(ncclRedOpCreatePreMulSum(&doubles, two.data(), ncclFloat, ncclScalarDevice, comm));
    reduce(halves, n * (n + 1) / 4, "operator");
    reduce(ncclSum, n * (n + 1) / 2, "taken");
    reduce(doubles, n * (n + 1), "operator");
    MUST(ncclRedOpDestroy(halves, comm));
    MUST(ncclRedOpDestroy(doubles, comm));
    MUST(ncclAllReduce(nothing.data(), nothing.data(), 0, ncclFloat, ncclSum, comm, stream));
    self.expect("empty");
    stream.synchronize();
    must(nothing.holds(7.0f), "an empty call wrote");
    const size_t many = kLimit / sizeof(float) + 1;
    Array<float> large(many, 1.0f);
    MUST(ncclAllReduce(large.data(), large.data(), many, ncclFloat, ncclMax, comm, stream));
    self.expect("size");
    stream.synchronize();
    must(large.holds(1.0f), "wrong result of a large call");
  }
  MUST(ncclCommDestroy(comm));
}

/// fp8 and its neighbours in size. Argument: what calls with fp8 are counted as.
SCENARIO(fp8) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    uint64_t hash = 0xCBF29CE484222325;
    for (const ElementType& type : all_types()) {
      if (type.bytes != 1) continue;
      for (const Operator& op : all_operators()) {
        const std::vector<Piece> pieces = {{1, 1}, {3, 5}, {9, 1000}};
        std::vector<Bytes> inputs;
        for (int r = 0; r < self.ranks; ++r)
          inputs.push_back(
              random_inputs(type, 1010, static_cast<uint64_t>((r * 100 + type.type) * 10 + op.op)));
        const Bytes got = reduce_batch(self, type, op.op, pieces, inputs, comm, stream);
        const std::string counted = type.floating ? self.argument : "taken";
        // NCCL's average is another (check_pieces).
        if (counted == "taken" || op.op != ncclAvg) check_pieces(self, type, op, kLimit, pieces, inputs, got);
        add_to_hash(hash, got.data(), got.size());
        self.expect(counted, pieces.size());
      }
    }
    must_be_equal_everywhere(hash, self.ranks, comm, stream);
  }
  MUST(ncclCommDestroy(comm));
}

/// A few sums of growing size, to 1 MiB: for tests of what is decided. Argument: bytes up to which a call is
/// expected to be taken; "declined" or "not_inspected" if none is.
SCENARIO(plain) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    for (size_t count = 1; count <= 256 * 1024; count *= 4) {
      Words data(count, static_cast<uint32_t>(self.rank + 1));
      MUST(sum(data, data, comm, stream));
      stream.synchronize();
      must(data.holds(static_cast<uint32_t>(self.ranks * (self.ranks + 1) / 2)), "wrong sum");
      const bool number = self.argument.find_first_not_of("0123456789") == std::string::npos;
      self.expect(!number ? self.argument : count * 4 <= std::stoul(self.argument) ? "taken" : "size");
    }
  }
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::node
