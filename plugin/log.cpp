#include "plugin/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "onehop/onehop.h"
#include "plugin/one_line.hpp"
#include "plugin/output_file.hpp"

namespace onehop::log {
namespace {

// Leaked on purpose: lines are written while other objects of the process are being destroyed.
spdlog::logger* logger = nullptr;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      return spdlog::level::off;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kTrace:
      return spdlog::level::trace;
  }
  return spdlog::level::off;
}

/// Writes to a file that is open, and stays so until the process is gone.
using FileSink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;

spdlog::sink_ptr sink_of(const Settings& settings, std::string& trouble) {
  if (!settings.log_file.empty()) {
    const Result<std::FILE*> file = open_output_file(path_of_process(settings.log_file), WriteMode::kAppend);
    if (file) return std::make_shared<FileSink>(*file);
    trouble = "ONEHOP_LOG_FILE cannot be opened, logging to standard error instead: " + file.reason();
  }
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

}  // namespace

void open(const Settings& settings) {
  if (logger != nullptr || settings.log == LogLevel::kOff) return;
  std::string trouble;
  // Not registered with spdlog, and no default logger touched: an application that uses spdlog itself must
  // not notice.
  auto* made = new spdlog::logger("onehop", sink_of(settings, trouble));
  made->set_pattern("[%Y-%m-%d %H:%M:%S.%e] onehop " ONEHOP_VERSION " %P: %l: %v");
  made->set_level(level_of(settings.log));
  made->flush_on(spdlog::level::trace);
  logger = made;
  if (!trouble.empty()) write(LogLevel::kWarn, trouble);
}

bool wants(LogLevel level) {
  return logger != nullptr && logger->should_log(level_of(level));
}

void write(LogLevel level, const std::string& text) {
  if (logger != nullptr) logger->log(level_of(level), one_line(text));
}

}  // namespace onehop::log
