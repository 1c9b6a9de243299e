// Sums of exactly the sizes that a test asks for: around what one operation carries, and up to what is taken.
#include <cstring>
#include <sstream>

#include "test/node/rank/device.hpp"
#include "test/node/rank/elements.hpp"

namespace onehop::node {
namespace {

constexpr size_t kMostInAGraph = 2 << 20;

/// Values that every type holds, as their sums: another one at each place and on each rank.
constexpr uint32_t kValues = 17;

uint32_t value_of(size_t i, int rank, uint32_t round) {
  const auto mixed = static_cast<uint32_t>(i) * 2654435761u + round * 97;
  return ((mixed >> 16) + static_cast<uint32_t>(rank) * 3) % kValues;
}

/// The bytes of `value` as an element of this type.
Bytes bytes_of(const ElementType& type, uint32_t value) {
  Bytes bytes(type.bytes);
  put_element(type, value, bytes.data());
  return bytes;
}

/// One sum and its buffers. The result, in place or not, lies between two guards; what is sent elsewhere
/// begins at another place on each rank.
class Call {
 public:
  Call(const Rank& self, const ElementType& type, size_t count, bool in_place)
      : self_(self),
        type_(type),
        count_(count),
        shift_(static_cast<size_t>(self.rank % 4) * type.bytes),
        receive_((count + 2) * type.bytes),
        send_(in_place ? nullptr : std::make_unique<Array<unsigned char>>(count * type.bytes + shift_)) {}

  void prepare(uint32_t round) const {
    Bytes values[kValues];
    for (uint32_t v = 0; v < kValues; ++v) values[v] = bytes_of(type_, v);
    const size_t before = send_ != nullptr ? shift_ : type_.bytes;
    Bytes sent(send_ != nullptr ? send_->size() : receive_.size(), kGuard);
    for (size_t i = 0; i < count_; ++i)
      std::memcpy(&sent[before + i * type_.bytes], values[value_of(i, self_.rank, round)].data(),
                  type_.bytes);
    if (send_ == nullptr) return receive_.write(sent);
    send_->write(sent);
    receive_.fill(kGuard);
  }
  void enqueue(ncclComm_t comm, cudaStream_t stream) const {
    unsigned char* const result = receive_.data() + type_.bytes;
    const unsigned char* from = send_ != nullptr ? send_->data() + shift_ : result;
    MUST(ncclAllReduce(from, result, count_, type_.type, ncclSum, comm, stream));
  }
  void check(uint32_t round, const char* how) const {
    Bytes totals[kValues];  // by rank 0's value, on which the others' depend
    for (uint32_t v = 0; v < kValues; ++v) {
      uint32_t total = 0;
      for (int r = 0; r < self_.ranks; ++r) total += (v + static_cast<uint32_t>(r) * 3) % kValues;
      totals[v] = bytes_of(type_, total);
    }
    const Bytes got = receive_.read();
    for (size_t i = 0; i < count_; ++i)
      must(std::memcmp(&got[(i + 1) * type_.bytes], totals[value_of(i, 0, round)].data(), type_.bytes) == 0,
           "wrong element " + std::to_string(i) + " of the sum of " + std::to_string(count_) + " " +
               type_.name + ", " + how);
    for (size_t b = 0; b < type_.bytes; ++b)
      must(got[b] == kGuard && got[(count_ + 1) * type_.bytes + b] == kGuard, "a write beside the result");
  }
  size_t bytes() const { return count_ * type_.bytes; }

 private:
  static constexpr unsigned char kGuard = 0xA5;
  const Rank& self_;
  const ElementType& type_;
  const size_t count_, shift_;
  const Array<unsigned char> receive_;
  const std::unique_ptr<Array<unsigned char>> send_;
};

}  // namespace

/// Argument: "fp32 1 100 4096, int8 77": types, each with the counts of its calls. Every call alone, and
/// those of up to 2 MiB again, all in one graph that is replayed.
SCENARIO(sizes) {
  const ncclComm_t comm = self.join();
  {
    const Stream stream;
    std::istringstream rows(self.argument);
    for (std::string row; std::getline(rows, row, ',');) {
      std::istringstream words(row);
      std::string name;
      words >> name;
      const ElementType& type = type_named(name);
      std::vector<std::unique_ptr<Call>> calls;
      for (size_t count = 0; words >> count;) {
        const bool in_place = (calls.size() + static_cast<size_t>(self.rank)) % 2 == 0;
        calls.push_back(std::make_unique<Call>(self, type, count, in_place));
        calls.back()->prepare(0);
        calls.back()->enqueue(comm, stream);
        stream.synchronize();
        calls.back()->check(0, "eager");
        self.expect("taken");
      }
      std::erase_if(calls, [](const auto& call) { return call->bytes() > kMostInAGraph; });
      const Graph graph(stream, [&] {
        for (const auto& call : calls) call->enqueue(comm, stream);
      });
      self.expect("taken", calls.size());
      for (uint32_t replay = 1; replay <= 2; ++replay) {
        for (const auto& call : calls) call->prepare(replay);
        graph.launch(stream);
        stream.synchronize();
        for (const auto& call : calls) call->check(replay, "in a graph");
      }
    }
  }
  MUST(ncclCommDestroy(comm));
}

}  // namespace onehop::node
