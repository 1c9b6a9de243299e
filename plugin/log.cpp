#include "plugin/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

#include "onehop/onehop.h"

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

spdlog::sink_ptr sink_of(const Settings& settings, std::string& trouble) {
  if (!settings.log_file.empty()) {
    try {
      return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path_of_process(settings.log_file));
    } catch (const std::exception& e) {
      trouble =
          std::string("ONEHOP_LOG_FILE cannot be opened, logging to standard error instead: ") + e.what();
    }
  }
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

}  // namespace

std::string path_of_process(std::string path) {
  const std::string pid = std::to_string(getpid());
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at + pid.size()))
    path.replace(at, 2, pid);
  return path;
}

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
  if (logger != nullptr) logger->log(level_of(level), text);
}

}  // namespace onehop::log
