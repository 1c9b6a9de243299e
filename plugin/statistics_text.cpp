#include "plugin/statistics_text.hpp"

#include <fmt/format.h>

namespace onehop {
namespace {

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

double ms(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

void append(std::string& list, const std::string& item, const char* separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string json_counters(const Statistics& s) {
  std::string sizes, reasons, methods;
  for (size_t b = 0; b < Statistics::kBuckets; ++b)
    if (s.taken(b) + s.passed(b) != 0)
      append(sizes,
             fmt::format("{{\"bytes_log2\":{},\"taken\":{},\"passed\":{}}}", b, s.taken(b), s.passed(b)),
             ",");
  for (size_t r = 0; r < kPassReasons; ++r)
    append(reasons, fmt::format("\"{}\":{}", kPassTexts[r], s.passed_because(static_cast<Pass>(r))), ",");
  for (uint32_t m = 0; m < kMethods; ++m) {
    const auto method = static_cast<Method>(m);
    if (s.taken_by(method) != 0)
      append(methods,
             fmt::format("\"{}\":{{\"calls\":{},\"bytes\":{}}}", name_of(method), s.taken_by(method),
                         s.bytes_by(method)),
             ",");
  }
  return fmt::format(
      "\"taken\":{},\"taken_bytes\":{},\"taken_with\":{{{}}},\"passed\":{},\"passed_bytes\":{},"
      "\"passed_because\":{{{}}},\"sizes\":[{}]",
      s.taken(), s.taken_bytes(), methods, s.passed(), s.passed_bytes(), reasons, sizes);
}

std::string json_sums(const char* name, const char* state, const Statistics& statistics) {
  return fmt::format("{{\"comm\":\"{}\",\"state\":\"{}\",\"reason\":\"\",{}}}", name, state,
                     json_counters(statistics));
}

std::string json_communicator(const StatisticsSnapshot::Listed& comm) {
  return fmt::format(
      "{{\"comm\":\"{:#x}\",\"state\":\"{}\",\"reason\":{},\"rank\":{},\"ranks\":{},\"meeting_ms\":{:.1f},"
      "\"set_up_ms\":{:.1f},\"staging_bytes\":{},\"plan\":{},{}}}",
      comm.handle, name_of(comm.state), json_text(comm.reason), comm.rank, comm.ranks, ms(comm.meeting_ns),
      ms(comm.set_up_ns), comm.staging_bytes, json_text(comm.plan), json_counters(comm.statistics));
}

}  // namespace

const char* name_of(RecordState state) {
  switch (state) {
    case RecordState::kFree:
      break;
    case RecordState::kOn:
      return "on";
    case RecordState::kOff:
      return "off";
    case RecordState::kFailed:
      return "failed";
  }
  return "?";
}

std::string methods_text(const Statistics& statistics) {
  std::string text;
  for (uint32_t m = 0; m < kMethods; ++m) {
    const auto method = static_cast<Method>(m);
    if (const uint64_t calls = statistics.taken_by(method); calls != 0)
      append(text,
             fmt::format("{} {} ({})", name_of(method), calls, bytes_text(statistics.bytes_by(method))));
  }
  return text;
}

std::string reasons_text(const Statistics& statistics) {
  std::string text;
  for (size_t r = 0; r < kPassReasons; ++r)
    if (const uint64_t calls = statistics.passed_because(static_cast<Pass>(r)); calls != 0)
      append(text, fmt::format("{} {}", kPassTexts[r], calls));
  return text;
}

std::string communicator_text(const StatisticsSnapshot::Listed& comm) {
  const Statistics& s = comm.statistics;
  std::string state = comm.state == RecordState::kOn    ? "ON"
                      : comm.state == RecordState::kOff ? "OFF"
                                                        : "FAILED";
  if (!comm.reason.empty()) state += " (" + comm.reason + ")";
  const std::string methods = methods_text(s), reasons = reasons_text(s);
  return fmt::format(
      "communicator {:#x}, rank {} of {}: {}, the ranks met in {:.1f} ms, set up in {:.1f} ms; {} taken{}{}; "
      "{} passed{}{}",
      comm.handle, comm.rank, comm.ranks, state, ms(comm.meeting_ns), ms(comm.set_up_ns), s.taken(),
      methods.empty() ? "" : ": ", methods, s.passed(), reasons.empty() ? "" : ": ", reasons);
}

std::string statistics_json(const StatisticsSnapshot& snapshot) {
  std::string comms;
  for (const StatisticsSnapshot::Listed& comm : snapshot.communicators)
    append(comms, json_communicator(comm), ",\n");
  append(comms, json_sums("destroyed", "gone", snapshot.gone), ",\n");
  append(comms, json_sums("none", "unknown", snapshot.elsewhere), ",\n");
  return fmt::format(
      "{{\"version\":{},\"pid\":{},\"images\":{},\"unlisted\":{},\"communicators\":[\n{}],\n"
      "\"totals\":{{{}}}}}\n",
      json_text(snapshot.version), snapshot.pid, snapshot.images, snapshot.unlisted, comms,
      json_counters(snapshot.sums()));
}

}  // namespace onehop
