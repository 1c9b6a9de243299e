// onehop's log: lines to standard error or a file, never to standard output. Only log.cpp includes spdlog.
//
// Texts begin in lower case and say the cause. Not on the call path.
#pragma once

#include <fmt/format.h>

#include <string>

#include "plugin/settings.hpp"

namespace onehop::log {

/// Once, before the first line. Lines before it are lost.
void open(const Settings&);

bool wants(LogLevel);
void write(LogLevel, const std::string& text);

template <class... Args>
void line(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (wants(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  line(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  line(LogLevel::kWarn, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  line(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  line(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

}  // namespace onehop::log
