#include "plugin/report.hpp"

#include <cstdio>

#include "plugin/globals.hpp"
#include "plugin/log.hpp"
#include "plugin/output_file.hpp"
#include "plugin/statistics_text.hpp"

namespace onehop {

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

void report_at_exit() {
  const Settings& settings = globals().settings;
  if (globals().images.count() == 0 || globals().forked) return;
  if (!settings.stats && settings.stats_file.empty()) return;
  const StatisticsSnapshot snapshot = globals().statistics.snapshot();
  if (settings.stats) {
    const Statistics sums = snapshot.sums();
    std::string how = methods_text(sums), why = reasons_text(sums);
    if (!how.empty()) how = "; taken with " + how;
    if (!why.empty()) why = " (" + why + ")";
    log::info("statistics: {} ncclAllReduce calls taken, {} passed to NCCL{}{}", sums.taken(), sums.passed(),
              why, how);
    for (const StatisticsSnapshot::Listed& comm : snapshot.communicators)
      log::info("statistics of {}", communicator_text(comm));
  }
  if (settings.stats_file.empty()) return;
  const Result<std::FILE*> file = open_output_file(path_of_process(settings.stats_file), WriteMode::kReplace);
  if (!file) return log::warn("ONEHOP_STATS_FILE: {}", file.reason());
  const std::string text = statistics_json(snapshot);
  std::fwrite(text.data(), 1, text.size(), *file);
  std::fclose(*file);
}

}  // namespace onehop
