// The one-shot kernels on a GPU: every count, alignment and rank count, eager and in graphs.
#include "test/gpu/local_ranks.hpp"
#include "test/gpu/reference.hpp"

namespace onehop::test {
namespace {

constexpr size_t kLimit = 64 << 10;
constexpr unsigned char kPoison = 0xA5;

/// One rank's buffers for a batch of calls: inputs that stay, a scratch input that is spoiled after every
/// call, and an output for each call.
class Buffers {
 public:
  Buffers(int device, size_t input_bytes, size_t output_bytes, uint64_t seed)
      : device_(device), host_input(random_bytes(input_bytes, seed)), output_bytes_(output_bytes) {
    const CurrentDevice scope(*cuda_device(), device);
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&input), input_bytes));
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&scratch), kLimit + 4096));
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&output), output_bytes));
    cuda_ok(cudaMemcpy(input, host_input.data(), input_bytes, cudaMemcpyHostToDevice));
    host_output.resize(output_bytes);
  }
  ~Buffers() {
    const CurrentDevice scope(*cuda_device(), device_);
    for (unsigned char* memory : {input, scratch, output}) (void)cudaFree(memory);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void poison() { cuda_ok(cudaMemset(output, kPoison, output_bytes_)); }
  void fetch() { cuda_ok(cudaMemcpy(host_output.data(), output, output_bytes_, cudaMemcpyDeviceToHost)); }

 private:
  int device_;

 public:
  std::vector<unsigned char> host_input, host_output;
  unsigned char *input = nullptr, *scratch = nullptr, *output = nullptr;

 private:
  size_t output_bytes_;
};

/// One call of a batch: where its input begins, and its output.
struct Shape {
  size_t count, input_at, output_at;
  uint32_t in_place;  ///< a bit for each rank
};
constexpr uint32_t kAllRanks = ~0u;

class OneShot : public testing::TestWithParam<std::tuple<int, Element, Reduction>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  Element element() const { return std::get<1>(GetParam()); }
  Reduction reduction() const { return std::get<2>(GetParam()); }
  size_t size() const { return element_size(element()); }

  void make(size_t output_bytes, bool mixes = true) {
    node_ = std::make_unique<LocalRanks>(ranks(), kLimit, mixes);
    for (int r = 0; r < ranks(); ++r)
      buffers_.push_back(std::make_unique<Buffers>((*node_)[r].device, 4 * kLimit, output_bytes, 1000 + r));
  }

  /// The input is copied to a scratch buffer, reduced from there, and spoiled at once: a kernel that still
  /// read it would show.
  void enqueue(size_t r, const Shape& shape, cudaStream_t on) {
    Buffers& b = *buffers_[r];
    const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
    unsigned char* send = b.scratch + shape.input_at % 16 / size() * size();
    const bool in_place = (shape.in_place >> r & 1) != 0;
    if (in_place) send = b.output + shape.output_at;
    cuda_ok(
        cudaMemcpyAsync(send, b.input + shape.input_at, shape.count * size(), cudaMemcpyDeviceToDevice, on));
    (*node_)[r].all_reduce({send, b.output + shape.output_at, shape.count, element(), reduction()}, on);
    if (!in_place) cuda_ok(cudaMemsetAsync(b.scratch, kPoison, kLimit + 4096, on));
  }

  void verify(const std::vector<Shape>& shapes) {
    std::vector<const unsigned char*> inputs(buffers_.size());
    for (const auto& b : buffers_) b->fetch();
    for (const Shape& shape : shapes) {
      for (size_t r = 0; r < buffers_.size(); ++r)
        inputs[r] = buffers_[r]->host_input.data() + shape.input_at;
      const unsigned char* first = buffers_[0]->host_output.data() + shape.output_at;
      for (size_t i = 0; i < shape.count; ++i) {
        const uint64_t want = expected(element(), reduction(), inputs, i), got = element_at(first, size(), i);
        if (want != got && !(is_nan(element(), want) && is_nan(element(), got)))
          FAIL() << "count " << shape.count << " element " << i << ": " << std::hex << got << ", expected "
                 << want;
      }
      for (size_t r = 1; r < buffers_.size(); ++r)
        ASSERT_EQ(std::memcmp(first, buffers_[r]->host_output.data() + shape.output_at, shape.count * size()),
                  0)
            << "rank " << r << " differs from rank 0 at count " << shape.count;
      for (const auto& b : buffers_)
        for (size_t i = shape.count * size(); i < shape.count * size() + 16; ++i)
          ASSERT_EQ(b->host_output[shape.output_at + i], kPoison)
              << "written beyond the end at count " << shape.count;
    }
  }

  std::unique_ptr<LocalRanks> node_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
};

TEST_P(OneShot, EveryCountUpTo4097AndTheSizesNearTheLimit) {
  const size_t limit = kLimit / size();
  std::vector<size_t> counts;
  for (size_t count = 0; count <= 4097; ++count) counts.push_back(count);
  for (size_t count : {limit / 2 - 1, limit / 2, limit - 9, limit - 1, limit}) counts.push_back(count);
  constexpr size_t kBatch = 64;
  make(kBatch * (kLimit + 64));
  for (size_t first = 0; first < counts.size(); first += kBatch) {
    std::vector<Shape> shapes;
    for (size_t k = 0; k < kBatch && first + k < counts.size(); ++k) {
      const size_t count = std::min(counts[first + k], limit);
      // Alignments of one element and more, different for input and output; every third call in place.
      shapes.push_back({count, (first + k) % 31 * size(), k * (kLimit + 64) + (first + k) % 3 * size(),
                        k % 3 == 0 ? kAllRanks : 0});
    }
    for (const auto& b : buffers_) b->poison();
    for (const Shape& shape : shapes) {
      if (shape.count == 0) continue;  // never reaches a kernel: NCCL gets empty calls
      for (size_t r = 0; r < node_->size(); ++r) enqueue(r, shape, (*node_)[r].stream);
    }
    node_->synchronize();
    if (HasFatalFailure()) return;
    verify(shapes);
    if (HasFatalFailure()) return;
  }
}

class Operators : public OneShot {};

TEST_P(Operators, AtTheEdgesOfPacksAndTheLimit) {
  const size_t limit = kLimit / size();
  constexpr size_t kPlace = kLimit + 64;
  std::vector<Shape> shapes;
  for (size_t count :
       {1ul, 2ul, 3ul, 5ul, 7ul, 8ul, 9ul, 15ul, 17ul, 1023ul, 1025ul, 21504ul, limit - 1, limit})
    // Aligned and one element off, in input and output; some ranks in place and others not, in the same call.
    for (size_t off : {0ul, 1ul}) {
      const size_t k = shapes.size();
      shapes.push_back({std::min(count, limit), (k % 3 != 0 ? off : 0) * size(), k * kPlace + off * size(),
                        static_cast<uint32_t>(0b10010110 >> (k % 5))});
    }
  make(shapes.size() * kPlace);
  for (const auto& b : buffers_) b->poison();
  for (const Shape& shape : shapes)
    for (size_t r = 0; r < node_->size(); ++r) enqueue(r, shape, (*node_)[r].stream);
  node_->synchronize();
  if (!HasFatalFailure()) verify(shapes);
}

/// A graph of each rank, of the calls `shapes`.
struct RankGraphs {
  std::vector<cudaGraphExec_t> executables;
};

class Graphs : public OneShot {
 protected:
  void TearDown() override {
    for (const RankGraphs& g : graphs_)
      for (cudaGraphExec_t executable : g.executables) cuda_ok(cudaGraphExecDestroy(executable));
  }

  size_t capture(const std::vector<Shape>& shapes, size_t first, size_t last) {
    graphs_.emplace_back();
    for (size_t r = 0; r < node_->size(); ++r) {
      const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
      cudaStream_t stream = (*node_)[r].stream;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (size_t k = first; k < last; ++k) enqueue(r, shapes[k], stream);
      cuda_ok(cudaStreamEndCapture(stream, &graph));
      cuda_ok(cudaGraphInstantiate(&executable, graph, 0));
      cuda_ok(cudaGraphDestroy(graph));
      graphs_.back().executables.push_back(executable);
    }
    return graphs_.size() - 1;
  }

  void replay(size_t which, size_t r, cudaStream_t on) {
    const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
    cuda_ok(cudaGraphLaunch(graphs_[which].executables[r], on));
  }

  /// Graphs and eager calls of one communicator on three streams, with nothing of the user's between them: a
  /// rank's operations must still come one after another, or two kernels of one rank take the same turn.
  void run_on_three_streams(bool mixes) {
    constexpr size_t kPlaces = 12;
    make(kPlaces * 4096, mixes);
    std::vector<Shape> shapes;
    // In place from fresh copies, each in a place of its own, so that the streams share no buffer.
    for (size_t k = 0; k < kPlaces; ++k)
      shapes.push_back({1 + (k * 97) % (3000 / size()), k * 48, k * 4096, kAllRanks});
    const size_t one = capture(shapes, 0, 5), two = capture(shapes, 5, 8);
    std::vector<std::array<cudaStream_t, 3>> streams(node_->size());
    for (size_t r = 0; r < node_->size(); ++r) {
      const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
      for (cudaStream_t& stream : streams[r])
        cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    std::mt19937 random(11);
    for (int round = 0; round < 40 && !HasFatalFailure(); ++round) {
      for (const auto& b : buffers_) b->poison();
      for (int step = 0; step < 50; ++step) {
        const unsigned what = random() % 3;
        const size_t place = 8 + random() % 4;
        for (size_t r = 0; r < node_->size(); ++r) {
          if (what == 0) replay(one, r, streams[r][0]);
          if (what == 1) replay(two, r, streams[r][1]);
          if (what == 2) enqueue(r, shapes[place], streams[r][2]);
        }
      }
      for (size_t r = 0; r < node_->size(); ++r) {
        replay(one, r, streams[r][0]);
        replay(two, r, streams[r][1]);
        for (size_t k = 8; k < kPlaces; ++k) enqueue(r, shapes[k], streams[r][2]);
      }
      for (size_t r = 0; r < node_->size(); ++r)
        for (cudaStream_t stream : streams[r]) cuda_ok(cudaStreamSynchronize(stream));
      node_->synchronize();
      if (!HasFatalFailure()) verify(shapes);
    }
    for (auto& of_rank : streams)
      for (cudaStream_t stream : of_rank) cuda_ok(cudaStreamDestroy(stream));
  }

  std::vector<RankGraphs> graphs_;
};

TEST_P(Graphs, OnOtherStreamsThanEagerCalls) {
  run_on_three_streams(true);
}

/// The control of the test above: without the events it must fail. By hand only, as it ends with its
/// deadline.
TEST_P(Graphs, DISABLED_WithoutTheEventsOperationsCollide) {
  run_on_three_streams(false);
}

TEST_P(Graphs, ReplaysMixedWithEagerCalls) {
  constexpr size_t kPlaces = 104;
  make(kPlaces * 4096);
  std::vector<Shape> shapes;
  for (size_t k = 0; k < kPlaces; ++k)
    shapes.push_back({1 + (k * 97) % (3000 / size()), k * 48, k * 4096, k % 2 == 0 ? kAllRanks : 0});
  for (const size_t calls : {1, 2, 3, 100}) capture(shapes, 0, calls);
  const auto replay_all = [&](size_t which) {
    for (size_t r = 0; r < node_->size(); ++r) replay(which, r, (*node_)[r].stream);
  };
  const auto eager = [&](size_t k) {
    for (size_t r = 0; r < node_->size(); ++r) enqueue(r, shapes[k], (*node_)[r].stream);
  };
  std::mt19937 random(7);
  int replays = 0;
  for (int round = 0; replays < 10000; ++round) {
    for (const auto& b : buffers_) b->poison();
    for (int step = 0; step < 20; ++step, ++replays) {
      replay_all(random() % 16 == 0 ? 3 : random() % 3);
      for (size_t n = random() % 3; n > 0; --n) eager(random() % kPlaces);
    }
    replay_all(3);
    for (size_t k = 100; k < kPlaces; ++k) eager(k);
    node_->synchronize();
    if (HasFatalFailure()) return;
    if (round % 16 == 0) verify(shapes);
    if (HasFatalFailure()) return;
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, Element, Reduction>>& info) {
  constexpr const char* names[] = {"Int8",    "Uint8",   "Int32",   "Uint32",   "Int64",      "Uint64",
                                   "Float16", "Float32", "Float64", "Bfloat16", "Float8e4m3", "Float8e5m2"};
  constexpr const char* operators[] = {"Sum", "Prod", "Max", "Min", "Avg"};
  return std::to_string(std::get<0>(info.param)) + "Ranks" +
         names[static_cast<size_t>(std::get<1>(info.param))] +
         operators[static_cast<size_t>(std::get<2>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, OneShot,
                         testing::Combine(testing::Range(2, 9),
                                          testing::Values(Element::kFloat32, Element::kFloat16,
                                                          Element::kBfloat16, Element::kFloat64,
                                                          Element::kInt32, Element::kInt64, Element::kUint8,
                                                          Element::kFloat8e4m3),
                                          testing::Values(Reduction::kSum)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, Operators,
                         testing::Combine(testing::Range(2, 9),
                                          testing::Values(Element::kInt8, Element::kUint8, Element::kInt32,
                                                          Element::kUint32, Element::kInt64, Element::kUint64,
                                                          Element::kFloat16, Element::kFloat32,
                                                          Element::kFloat64, Element::kBfloat16,
                                                          Element::kFloat8e4m3, Element::kFloat8e5m2),
                                          testing::Values(Reduction::kSum, Reduction::kProd, Reduction::kMax,
                                                          Reduction::kMin, Reduction::kAvg)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, Graphs,
                         testing::Values(std::tuple(2, Element::kBfloat16, Reduction::kSum),
                                         std::tuple(3, Element::kInt32, Reduction::kMax),
                                         std::tuple(4, Element::kFloat32, Reduction::kSum),
                                         std::tuple(8, Element::kBfloat16, Reduction::kSum)),
                         name_of);

}  // namespace
}  // namespace onehop::test
