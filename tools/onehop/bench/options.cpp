#include "tools/onehop/bench/options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tools/onehop/bench/models.hpp"
#include "tools/onehop/bench/table.hpp"

namespace onehop::bench {
namespace {

constexpr size_t kLargest = size_t{64} << 20;
constexpr size_t kQuickSizes[] = {64, 4 << 10, 42 << 10, 256 << 10, 1 << 20};
/// Buffers of all calls of a case, of one kind and rank.
constexpr size_t kMemory = size_t{256} << 20;
constexpr size_t kEagerCalls = 20;
/// NCCL's kernels have a block for each channel, and a multiprocessor holds one. Half of a small GPU.
constexpr int kBlocksThatFit = 32;

Result<size_t> parse_size(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  const std::string unit = end;
  const size_t scale = unit.empty() ? 1 : unit == "K" ? 1 << 10 : unit == "M" ? 1 << 20 : 0;
  if (text.empty() || text[0] < '0' || text[0] > '9' || scale == 0 || errno != 0 || number == 0 ||
      number > kLargest / scale)
    return Error{"not a size from 1 to 64M, with K or M behind it or nothing: \"" + text + "\""};
  return static_cast<size_t>(number) * scale;
}

struct Shape {
  size_t bytes, calls;
  std::string note;
};

/// Models that share a size and a number of calls share a measurement.
Result<std::vector<Shape>> decode_shapes(const Options& options, size_t element) {
  std::map<std::pair<size_t, size_t>, std::string> notes;
  for (const Model& model : models()) {
    if (std::string(model.name).find(options.models) == std::string::npos) continue;
    for (const size_t batch : kBatches) {
      if (options.quick && batch != 1 && batch != 8 && batch != 32) continue;
      std::string& note = notes[{batch * model.hidden * element, model.layers * kCallsPerLayer}];
      const std::string name = model.name;
      note += (note.empty() ? "" : ", ") + name.substr(name.find('/') + 1) + " x" + std::to_string(batch);
    }
  }
  if (notes.empty()) return Error{"no model that has \"" + options.models + "\" in its name"};
  std::vector<Shape> shapes{{kDecodeBytes, kDecodeCalls, "42 KiB of the project's profile"}};
  for (const auto& [key, note] : notes) shapes.push_back({key.first, key.second, note});
  return shapes;
}

Result<std::vector<Shape>> shapes_of(const Options& options, size_t element) {
  if (options.decode) return decode_shapes(options, element);
  std::vector<size_t> sizes = ladder();
  if (options.quick) sizes.assign(std::begin(kQuickSizes), std::end(kQuickSizes));
  if (!options.sizes.empty()) {
    Result<std::vector<size_t>> parsed = parse_sizes(options.sizes);
    if (!parsed) return parsed.error();
    sizes = *parsed;
  }
  std::vector<Shape> shapes;
  shapes.reserve(sizes.size());
  for (const size_t bytes : sizes) shapes.push_back({bytes, calls_for(bytes, options.calls), ""});
  return shapes;
}

Result<std::vector<Mode>> modes_of(const Options& options) {
  std::vector<Mode> modes;
  for (const std::string& name : options.modes) {
    const auto* found =
        std::find_if(std::begin(kModes), std::end(kModes), [&](Mode m) { return name_of(m) == name; });
    if (found == std::end(kModes))
      return Error{"no such mode: " + name + " (there are graph, graph-default, eager)"};
    modes.push_back(*found);
  }
  if (!modes.empty()) return modes;
  modes = {Mode::kGraph, Mode::kGraphDefault};
  if (!options.decode) modes.push_back(Mode::kEager);
  return modes;
}

}  // namespace

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::kGraph:
      return "graph";
    case Mode::kGraphDefault:
      return "graph-default";
    case Mode::kEager:
      return "eager";
  }
  return "";
}

Result<std::vector<size_t>> parse_sizes(const std::string& text) {
  std::vector<size_t> sizes;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    Result<size_t> size = parse_size(word);
    if (!size) return size.error();
    sizes.push_back(*size);
  }
  if (sizes.empty()) return Error{"no sizes"};
  return sizes;
}

std::vector<size_t> ladder() {
  std::vector<size_t> sizes{kDecodeBytes};
  for (size_t bytes = 8; bytes <= kLargest; bytes *= 2) sizes.push_back(bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

size_t calls_for(size_t bytes, size_t wanted) {
  return std::clamp<size_t>(kMemory / stride_of(bytes), 1, wanted);
}

Result<std::vector<Case>> cases_of(const Options& options) {
  const Result<std::vector<Mode>> modes = modes_of(options);
  if (!modes) return modes.error();
  std::vector<Case> cases;
  for (const Mode mode : *modes) {
    for (const std::string& name : options.types) {
      const ElementType* type = find_type(name);
      if (type == nullptr) {
        std::string known;
        for (const ElementType& t : element_types()) known.append(known.empty() ? "" : ", ").append(t.name);
        return Error{
            std::string("no such type: ").append(name).append(" (there are ").append(known).append(")")};
      }
      const Result<std::vector<Shape>> shapes = shapes_of(options, type->size);
      if (!shapes) return shapes.error();
      for (const bool in_place : {false, true}) {
        if (options.places != "both" && (options.places == "in") != in_place) continue;
        for (const Shape& shape : *shapes) {
          const size_t calls = mode == Mode::kEager ? std::min(shape.calls, kEagerCalls) : shape.calls;
          if (shape.bytes % type->size != 0)
            return Error{human(shape.bytes) + " are no whole number of " + name + " elements"};
          cases.push_back({mode, type, in_place, shape.bytes, calls, shape.note});
        }
      }
    }
  }
  return cases;
}

std::vector<Skipped> take_out(std::vector<Case>& cases, int ranks_per_gpu, bool same_process, int channels) {
  const bool fits = channels > 0 && ranks_per_gpu * channels <= kBlocksThatFit;
  std::vector<Skipped> skipped;
  std::vector<Case> kept;
  for (const Case& one : cases) {
    if (ranks_per_gpu > 2 && !fits && one.bytes > size_t{512} << 10)
      skipped.push_back(
          {one, "above 512 KiB stock NCCL's kernels of " + std::to_string(ranks_per_gpu) +
                    " ranks may not fit on one GPU at once, and would hang; NCCL_MAX_NCHANNELS=" +
                    std::to_string(std::max(kBlocksThatFit / ranks_per_gpu, 1)) + " makes them fit"});
    else if (ranks_per_gpu > 1 && same_process && one.mode == Mode::kGraphDefault)
      skipped.push_back({one, "ranks of one process that share a GPU share its default stream, too"});
    else
      kept.push_back(one);
  }
  cases = std::move(kept);
  return skipped;
}

}  // namespace onehop::bench
