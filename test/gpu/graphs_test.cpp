// Every method in graphs: replays beside each other and beside eager calls, on one stream and on several.
// Inputs are spoiled behind each call; results are compared with the host's reference.

#include <array>
#include <random>

#include "test/gpu/local_ranks.hpp"
#include "test/gpu/names.hpp"
#include "test/gpu/reference.hpp"

namespace onehop::test {
namespace {

constexpr size_t kPlace = 4096;    ///< bytes for the result of one call, and for poison behind it
constexpr size_t kLargest = 3000;  ///< bytes of a call
constexpr unsigned char kPoison = 0xA5;
constexpr uint32_t kAllRanks = ~0u;

/// One rank's buffers for a batch of calls: inputs that stay, a scratch input that is spoiled after every
/// call, and an output for each call.
class Buffers {
 public:
  Buffers(int device, size_t places, uint64_t seed)
      : device_(device),
        host_input(random_bytes((places + 1) * kPlace, seed)),
        output_bytes_(places * kPlace) {
    const CurrentDevice scope(*cuda_device(), device);
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&input), host_input.size()));
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&scratch), kPlace));
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&output), output_bytes_));
    cuda_ok(cudaMemcpy(input, host_input.data(), host_input.size(), cudaMemcpyHostToDevice));
    host_output.resize(output_bytes_);
  }
  ~Buffers() {
    const CurrentDevice scope(*cuda_device(), device_);
    for (unsigned char* memory : {input, scratch, output}) (void)cudaFree(memory);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void poison() {
    const CurrentDevice scope(*cuda_device(), device_);
    cuda_ok(cudaMemset(output, kPoison, output_bytes_));
    cuda_ok(cudaDeviceSynchronize());
  }
  void fetch() {
    const CurrentDevice scope(*cuda_device(), device_);
    cuda_ok(cudaMemcpy(host_output.data(), output, output_bytes_, cudaMemcpyDeviceToHost));
  }

 private:
  int device_;

 public:
  std::vector<unsigned char> host_input, host_output;
  unsigned char *input = nullptr, *scratch = nullptr, *output = nullptr;

 private:
  size_t output_bytes_;
};

/// One call: where its input begins, and its output.
struct Shape {
  size_t count, input_at, output_at;
  uint32_t in_place;  ///< a bit for each rank
};

struct Parameters {
  Method method;
  uint32_t ranks;
  Element element;
  Reduction reduction;
  StagingKind kind = StagingKind::kPeer;
};

/// Long runs for one method: the order of calls is the same code for all.
bool is_long(const Parameters& parameters) {
  return parameters.method == Method::kOneShot;
}

class Graphs : public testing::TestWithParam<Parameters> {
 protected:
  void TearDown() override {
    for (const auto& executables : graphs_)
      for (cudaGraphExec_t executable : executables) cuda_ok(cudaGraphExecDestroy(executable));
  }

  size_t size() const { return element_size(GetParam().element); }

  void make(size_t places, bool mixes = true) {
    NodeOptions options;
    options.ranks = GetParam().ranks;
    options.kind = GetParam().kind;
    options.mixes = mixes;
    node_ = std::make_unique<LocalRanks>(options);
    for (size_t r = 0; r < node_->size(); ++r)
      buffers_.push_back(std::make_unique<Buffers>((*node_)[r].device, places, 1000 + r));
  }

  Shape shape(size_t place, uint32_t in_place) const {
    return {1 + place * 97 % (kLargest / size()), place * 48, place * kPlace, in_place};
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
    const Parameters& parameters = GetParam();
    (*node_)[r].all_reduce({send, b.output + shape.output_at, shape.count, parameters.element,
                            parameters.reduction, parameters.method},
                           on);
    if (!in_place) cuda_ok(cudaMemsetAsync(b.scratch, kPoison, kPlace, on));
  }

  void verify(const std::vector<Shape>& shapes) {
    const Element element = GetParam().element;
    std::vector<const unsigned char*> inputs(buffers_.size());
    for (const auto& b : buffers_) b->fetch();
    for (const Shape& shape : shapes) {
      for (size_t r = 0; r < buffers_.size(); ++r)
        inputs[r] = buffers_[r]->host_input.data() + shape.input_at;
      const unsigned char* first = buffers_[0]->host_output.data() + shape.output_at;
      for (size_t i = 0; i < shape.count; ++i) {
        const uint64_t want = expected(element, GetParam().reduction, inputs, i),
                       got = element_at(first, size(), i);
        if (want != got && !(is_nan(element, want) && is_nan(element, got)))
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
      graphs_.back().push_back(executable);
    }
    return graphs_.size() - 1;
  }

  void replay(size_t which, size_t r, cudaStream_t on) {
    const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
    cuda_ok(cudaGraphLaunch(graphs_[which][r], on));
  }

  /// Graphs and eager calls of one communicator on three streams, with nothing of the user's between them: a
  /// rank's operations must still come one after another, or two kernels of one rank take the same turn.
  void run_on_three_streams(bool mixes) {
    constexpr size_t kPlaces = 12;
    make(kPlaces, mixes);
    std::vector<Shape> shapes;
    // In place from fresh copies, each in a place of its own, so that the streams share no buffer.
    for (size_t k = 0; k < kPlaces; ++k) shapes.push_back(shape(k, kAllRanks));
    const size_t one = capture(shapes, 0, 5), two = capture(shapes, 5, 8);
    std::vector<std::array<cudaStream_t, 3>> streams(node_->size());
    for (size_t r = 0; r < node_->size(); ++r) {
      const CurrentDevice scope(*cuda_device(), (*node_)[r].device);
      for (cudaStream_t& stream : streams[r])
        cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    std::mt19937 random(11);
    const int rounds = is_long(GetParam()) ? 40 : 10;
    for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
      for (const auto& b : buffers_) b->poison();
      for (int step = 0; step < 50; ++step) {
        const auto what = random() % 3;
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
      for (auto& of_rank : streams)
        for (cudaStream_t stream : of_rank) cuda_ok(cudaStreamSynchronize(stream));
      node_->synchronize();
      if (!HasFatalFailure()) verify(shapes);
    }
    for (auto& of_rank : streams)
      for (cudaStream_t stream : of_rank) cuda_ok(cudaStreamDestroy(stream));
  }

  std::unique_ptr<LocalRanks> node_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::vector<std::vector<cudaGraphExec_t>> graphs_;  ///< of each rank
};

/// As many ranks as have their streams in queues of their own (kManyQueues), if they all share a GPU: streams
/// that share one wait for each other, and a rank would wait for another that is queued behind it.
class OnThreeStreams : public Graphs {};

TEST_P(OnThreeStreams, GraphsAndEagerCallsKeepTheOrder) {
  run_on_three_streams(true);
}

/// The control of the test above: without the events it must fail. By hand only, as it ends with its
/// deadline.
TEST_P(OnThreeStreams, DISABLED_WithoutTheEventsOperationsCollide) {
  run_on_three_streams(false);
}

TEST_P(Graphs, MixedWithEagerCallsAreRight) {
  constexpr size_t kPlaces = 104;
  make(kPlaces);
  std::vector<Shape> shapes;
  for (size_t k = 0; k < kPlaces; ++k) shapes.push_back(shape(k, k % 2 == 0 ? kAllRanks : 0));
  for (const size_t calls : {1, 2, 3, 100}) capture(shapes, 0, calls);
  const auto replay_all = [&](size_t which) {
    for (size_t r = 0; r < node_->size(); ++r) replay(which, r, (*node_)[r].stream);
  };
  const auto eager = [&](size_t k) {
    for (size_t r = 0; r < node_->size(); ++r) enqueue(r, shapes[k], (*node_)[r].stream);
  };
  std::mt19937 random(7);
  const int all_replays = is_long(GetParam()) ? 10000 : 1500;
  int replays = 0;
  for (int round = 0; replays < all_replays; ++round) {
    for (const auto& b : buffers_) b->poison();
    for (int step = 0; step < 20; ++step, ++replays) {
      replay_all(random() % 16 == 0 ? 3 : random() % 3);
      for (auto n = random() % 3; n > 0; --n) eager(random() % kPlaces);
    }
    replay_all(3);
    for (size_t k = 100; k < kPlaces; ++k) eager(k);
    node_->synchronize();
    if (HasFatalFailure()) return;
    if (round % 16 == 0) verify(shapes);
    if (HasFatalFailure()) return;
  }
}

std::vector<Parameters> all_parameters() {
  std::vector<Parameters> all;
  const auto add = [&](Method method, StagingKind kind) {
    all.push_back({method, 2, Element::kBfloat16, Reduction::kSum, kind});
    all.push_back({method, 3, Element::kInt32, Reduction::kMax, kind});
    all.push_back({method, 4, Element::kFloat32, Reduction::kSum, kind});
    all.push_back({method, 8, Element::kBfloat16, Reduction::kSum, kind});
  };
  for (uint32_t method = 0; method < kMethods; ++method) add(static_cast<Method>(method), StagingKind::kPeer);
  for (const Method method : {Method::kOneShotPull, Method::kTwoShotPull}) add(method, StagingKind::kHost);
  return all;
}

std::string test_name(const testing::TestParamInfo<Parameters>& tested) {
  const Parameters& parameters = tested.param;
  return word_of(parameters.method) + std::to_string(parameters.ranks) + "Ranks" +
         name_of(parameters.element) + name_of(parameters.reduction) +
         (parameters.kind == StagingKind::kHost ? "HostMemory" : "");
}

constexpr Parameters kSixteen = {Method::kIslands, 16, Element::kFloat16, Reduction::kAvg};

INSTANTIATE_TEST_SUITE_P(All, OnThreeStreams, testing::ValuesIn(all_parameters()), test_name);
INSTANTIATE_TEST_SUITE_P(All, Graphs, testing::ValuesIn(all_parameters()), test_name);
INSTANTIATE_TEST_SUITE_P(Islands, Graphs, testing::Values(kSixteen), test_name);

}  // namespace
}  // namespace onehop::test
