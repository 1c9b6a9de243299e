#include "plugin/report.hpp"

#include <cstdio>

#include "onehop/onehop.h"
#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/output_file.hpp"

namespace onehop {
namespace {

std::string reasons_text(const Statistics& statistics) {
  std::string text;
  for (size_t r = 0; r < kPassReasons; ++r) {
    const uint64_t count = statistics.passed_because(static_cast<Pass>(r));
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kPassTexts[r], count);
  }
  return text.empty() ? text : " (" + text + ")";
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string json_counters(const Statistics& statistics) {
  std::string sizes, reasons;
  for (size_t b = 0; b < Statistics::kBuckets; ++b)
    if (statistics.taken(b) + statistics.passed(b) != 0)
      sizes += fmt::format("{}{{\"bytes_log2\":{},\"taken\":{},\"passed\":{}}}", sizes.empty() ? "" : ",", b,
                           statistics.taken(b), statistics.passed(b));
  for (size_t r = 0; r < kPassReasons; ++r)
    reasons += fmt::format("{}\"{}\":{}", r == 0 ? "" : ",", kPassTexts[r],
                           statistics.passed_because(static_cast<Pass>(r)));
  return fmt::format("\"taken\":{},\"passed\":{},\"passed_because\":{{{}}},\"sizes\":[{}]",
                     statistics.taken(), statistics.passed(), reasons, sizes);
}

std::string json() {
  std::string comms;
  const auto add = [&comms](const std::string& name, const char* state, const std::string& reason,
                            const Statistics& statistics) {
    if (!comms.empty()) comms += ",\n";
    comms += fmt::format("{{\"comm\":{},\"state\":\"{}\",\"reason\":{},{}}}", json_text(name), state,
                         json_text(reason), json_counters(statistics));
  };
  globals().registry.for_each([&](nccl::Comm handle, Communicator& comm) {
    const bool failed = comm.last_stopped() != Stop::kNone;
    add(fmt::format("{}", static_cast<const void*>(handle)),
        failed      ? "failed"
        : comm.on() ? "on"
                    : "off",
        failed ? "aborted or timed out" : comm.reason(), comm.statistics());
  });
  add("destroyed", "gone", "", globals().gone);
  add("none", "unknown", "", globals().elsewhere);
  Statistics sums;
  add_all(sums);
  return fmt::format("{{\"version\":\"" ONEHOP_VERSION "\",\"communicators\":[\n{}],\n\"totals\":{{{}}}}}\n",
                     comms, json_counters(sums));
}

}  // namespace

std::string reason_of(const Communicator& comm) {
  switch (comm.stopped()) {
    case Stop::kAbort:
      return "aborted";
    case Stop::kTimeout:
      return fmt::format("the data of rank {} did not come within ONEHOP_TIMEOUT_S={}", comm.missing_rank(),
                         globals().settings.timeout_s);
    case Stop::kNone:
      break;
  }
  return comm.closed() ? "finalized" : comm.reason();
}

void add_all(Statistics& sums) {
  sums.add(globals().elsewhere);
  sums.add(globals().gone);
  globals().registry.for_each([&](nccl::Comm, const Communicator& comm) { sums.add(comm.statistics()); });
}

void report_at_exit() {
  const Settings& settings = globals().settings;
  if (globals().images.count() == 0 || globals().forked) return;
  if (settings.stats) {
    Statistics sums;
    add_all(sums);
    log::info("statistics: {} ncclAllReduce calls taken, {} passed to NCCL{}", sums.taken(), sums.passed(),
              reasons_text(sums));
  }
  if (settings.stats_file.empty()) return;
  const Result<std::FILE*> file = open_output_file(path_of_process(settings.stats_file), WriteMode::kReplace);
  if (!file) return log::warn("ONEHOP_STATS_FILE: {}", file.reason());
  const std::string text = json();
  std::fwrite(text.data(), 1, text.size(), *file);
  std::fclose(*file);
}

}  // namespace onehop
