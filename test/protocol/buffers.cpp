#include "test/protocol/buffers.hpp"

#include <algorithm>
#include <cstring>

#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

constexpr size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xA5;
constexpr unsigned char kPoison = 0x5C;

size_t offset_of(const Step& step, uint32_t shift) {
  return kGuard + shift * element_size(step.element);
}

}  // namespace

Buffers::Buffers(const Script& script) {
  for (const Step& step : script) size_ = std::max(size_, packs_of(step) * sizeof(Pack) + 3 * kGuard);
  send_ = make_block();
  receive_ = make_block();
}

Buffers::Block Buffers::make_block() const {
  Block block{std::vector<unsigned char>(size_ + sizeof(Pack)), nullptr};
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(block.storage.data()) % sizeof(Pack);
  block.base = block.storage.data() + (misaligned ? sizeof(Pack) - misaligned : 0);
  return block;
}

Operation Buffers::prepare(const Step& step, const Part& part) {
  const size_t bytes = part.input.size();
  std::memset(send_.base, kGuardByte, size_);
  std::memset(receive_.base, kGuardByte, size_);
  unsigned char* send = send_.base + offset_of(step, part.send_shift);
  unsigned char* receive = receive_.base + offset_of(step, part.receive_shift);
  std::memset(receive, kPoison, bytes);
  if (part.in_place) send = receive;
  std::copy(part.input.begin(), part.input.end(), send);
  return Operation{send, receive, step.count, step.element, step.reduction, step.method};
}

void Buffers::finish(const Step& step, const Part& part, uint32_t operation,
                     std::vector<std::string>& problems) {
  const size_t bytes = part.input.size(), at = offset_of(step, part.receive_shift);
  results_.emplace_back(receive_.base + at, receive_.base + at + bytes);
  for (size_t i = 0; i < size_; ++i)
    if ((i < at || i >= at + bytes) && receive_.base[i] != kGuardByte) {
      problems.push_back("operation " + std::to_string(operation) + " wrote outside its output");
      return;
    }
  if (!part.in_place &&
      !std::equal(part.input.begin(), part.input.end(), send_.base + offset_of(step, part.send_shift)))
    problems.push_back("operation " + std::to_string(operation) + " changed its input");
}

void compare_results(const Script& script, const std::vector<const Buffers*>& ranks,
                     std::vector<std::string>& problems) {
  for (size_t k = 0; k < script.size(); ++k) {
    const Step& step = script[k];
    const size_t size = element_size(step.element);
    // By instantiation: of which operand a sum of NaNs has its bits, a CPU's compiler may choose.
    const std::vector<unsigned char>* first[2] = {};
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r]->results().size() <= k) continue;
      const std::vector<unsigned char>& result = ranks[r]->results()[k];
      const std::string where = "rank " + std::to_string(r) + ", operation " + std::to_string(k);
      for (size_t i = 0; i < step.count; ++i) {
        const bool right = is_nan_lane(step.element, step.expected, i)
                               ? is_nan_lane(step.element, result, i)
                               : std::memcmp(&result[i * size], &step.expected[i * size], size) == 0;
        if (right) continue;
        problems.push_back(where + ": element " + std::to_string(i) + " of " + std::to_string(step.count) +
                           " is wrong");
        break;
      }
      const std::vector<unsigned char>*& other = first[step.parts[r].typed];
      if (other && *other != result) problems.push_back(where + ": bits differ from another rank's");
      if (!other) other = &result;
    }
  }
}

}  // namespace onehop::test
