#include "test/protocol/script.hpp"

#include <algorithm>
#include <cstring>

#include "test/protocol/random.hpp"
#include "test/protocol/reference.hpp"

namespace onehop::test {
namespace {

constexpr uint64_t kOnes = ~uint64_t{0};

uint64_t sign_bit(Element element) {
  return uint64_t{1} << (8 * element_size(element) - 1);
}

/// A finite value of everyday size.
uint64_t moderate_bits(Element element, Random& random) {
  const double value = (static_cast<double>(random.below(1 << 20)) - (1 << 19)) / (1 << 15);
  uint64_t bits = 0;
  const float narrow = static_cast<float>(value);
  if (const auto format = format_of(element))
    bits = format->round(value);
  else if (element == Element::kFloat32)
    std::memcpy(&bits, &narrow, sizeof(narrow));
  else if (element == Element::kFloat64)
    std::memcpy(&bits, &value, sizeof(value));
  else
    bits = random.next();
  return bits;
}

/// Values that a protocol could confuse with its own words, or lose on the way.
uint64_t special_bits(Element element, Random& random) {
  if (!is_floating(element))
    return std::vector<uint64_t>{
        0, 1, kOnes, kOnes - 1, sign_bit(element), sign_bit(element) - 1}[random.below(6)];
  const auto format = format_of(element);
  const uint64_t infinity = format                         ? format->infinity()
                            : element == Element::kFloat32 ? 0x7F800000
                                                           : 0x7FF0000000000000;
  const uint64_t sign = random.one_in(2) ? sign_bit(element) : 0;
  switch (random.below(8)) {
    case 0:
      return sign;  // zero
    case 1:
      return sign | infinity;
    case 2:
      return sign | 1;  // smallest denormal
    case 3:
      return sign | infinity >> 1;
    case 4:
      return sign | (infinity - 1);  // largest finite
    case 5:
      return sign | infinity | 1;  // signalling NaN
    case 6:
      return kOnes - 1;
    default:
      return kOnes;
  }
}

std::vector<std::vector<unsigned char>> random_inputs(Element element, size_t count, uint32_t ranks,
                                                      Random& random) {
  const size_t size = element_size(element);
  std::vector<std::vector<unsigned char>> inputs(ranks, std::vector<unsigned char>(count * size));
  const size_t lanes_per_word = std::max<size_t>(1, 4 / size);
  uint32_t theme = 0, chosen = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i % lanes_per_word == 0) {
      theme = random.below(12);
      chosen = random.below(ranks);
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      uint64_t bits;
      if (theme == 0)
        bits = sign_bit(element);  // -0 on all ranks: the sum is -0
      else if (theme == 1 && r == chosen)
        bits = kOnes;  // a whole word of ones ...
      else if (theme == 5 && r == chosen)
        bits = i % lanes_per_word == 0 ? kOnes - 1 : kOnes;  // ... and all but one bit
      else if (theme == 2)
        bits = r == chosen ? special_bits(element, random) : sign_bit(element);
      else if (theme == 3)
        bits = random.next();
      else if (theme == 4)
        bits = special_bits(element, random);
      else
        bits = moderate_bits(element, random);
      std::memcpy(inputs[r].data() + i * size, &bits, size);
    }
  }
  return inputs;
}

Shape random_shape(uint32_t threads, Random& random) {
  Shape shape;
  shape.blocks = random.between(1, std::min(threads, 4u));
  shape.threads = random.between(1, threads / shape.blocks);
  shape.separate_keeper = shape.threads > 1 && random.one_in(2);
  return shape;
}

/// Fewer packs than ranks, and partial packs, are as frequent as all else.
size_t random_count(Element element, uint32_t most_packs, uint32_t ranks, Random& random) {
  const uint32_t lanes = static_cast<uint32_t>(16 / element_size(element));
  const auto up_to = [&](uint32_t packs) { return random.between(1, std::min(packs, most_packs) * lanes); };
  switch (random.below(8)) {
    case 0:
      return random.one_in(2) ? 0 : size_t{most_packs} * lanes;
    case 1:
    case 2:
      return up_to(2);
    case 3:
    case 4:
      return up_to(2 * ranks);
    default:
      return up_to(most_packs);
  }
}

uint32_t most_packs_of(Method method, const ScriptOptions& options, Element element) {
  return largest_operation(method, options.layout, word_kind(element), options.islands, wide_packs(element));
}

/// A method that can serve the communicator.
Method random_method(const ScriptOptions& options, Element element, Random& random) {
  while (true) {
    const Method method = options.methods[random.below(static_cast<uint32_t>(options.methods.size()))];
    if (most_packs_of(method, options, element) > 0) return method;
  }
}

}  // namespace

Script random_script(const ScriptOptions& options) {
  Random random(options.seed);
  Script script(options.steps);
  const uint32_t ranks = options.layout.ranks;
  uint32_t late_rank = 0;
  for (uint32_t k = 0; k < options.steps; ++k) {
    Step& step = script[k];
    const Step* repeated =
        k > 0 && random.one_in(2) ? &script[k - 1 - random.below(std::min(k, 4u))] : nullptr;
    if (random.one_in(50)) late_rank = random.below(ranks);  // one rank is behind for a while
    step.element = options.elements[random.below(static_cast<uint32_t>(options.elements.size()))];
    step.reduction = options.reductions[random.below(static_cast<uint32_t>(options.reductions.size()))];
    if (repeated) {
      step.element = repeated->element;
      step.reduction = repeated->reduction;
    }
    step.method =
        repeated && random.one_in(2) ? repeated->method : random_method(options, step.element, random);
    step.count = random_count(step.element, most_packs_of(step.method, options, step.element), ranks, random);
    auto inputs = random_inputs(step.element, step.count, ranks, random);
    for (uint32_t r = 0; repeated && r < ranks; ++r) {
      const std::vector<unsigned char>& earlier = repeated->parts[r].input;
      std::copy_n(earlier.begin(), std::min(earlier.size(), inputs[r].size()), inputs[r].begin());
    }
    step.expected = reference(step.element, step.reduction, step.count, inputs);
    for (uint32_t r = 0; r < ranks; ++r) {
      Part part;
      part.input = std::move(inputs[r]);
      part.shape = random_shape(options.threads, random);
      part.in_place = random.one_in(3);
      const uint32_t lanes = static_cast<uint32_t>(16 / element_size(step.element));
      part.send_shift = random.one_in(2) ? 0 : random.below(lanes);
      part.receive_shift = random.one_in(2) ? 0 : random.below(lanes);
      if (r == late_rank ? random.one_in(4) : random.one_in(40)) part.delay_us = random.below(300);
      part.typed = !random.one_in(3);
      step.parts.push_back(std::move(part));
    }
  }
  return script;
}

Step plain_step(Element element, size_t count, uint32_t ranks, uint64_t seed, Method method) {
  Random random(seed);
  Step step;
  step.element = element;
  step.method = method;
  step.count = count;
  const size_t size = element_size(element);
  std::vector<std::vector<unsigned char>> inputs(ranks, std::vector<unsigned char>(count * size));
  for (auto& input : inputs)
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bits = moderate_bits(element, random);
      std::memcpy(input.data() + i * size, &bits, size);
    }
  step.expected = reference(element, step.reduction, count, inputs);
  for (auto& input : inputs) {
    Part part;
    part.input = std::move(input);
    step.parts.push_back(std::move(part));
  }
  return step;
}

uint32_t packs_of(const Step& step) {
  return static_cast<uint32_t>((step.count * element_size(step.element) + sizeof(Pack) - 1) / sizeof(Pack));
}

}  // namespace onehop::test
