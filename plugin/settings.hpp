// The settings: one table (settings.cpp) from which the parser, the error messages, docs/settings.md and the
// agreement between ranks are made. Read once, when the plugin is loaded; a value never changes under a
// reader.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onehop {

/// kOneShot and kTwoShot leave the form open: push, or in host memory pull.
enum class Algo {
  kAuto,
  kOneShot,
  kTwoShot,
  kOneShotPush,
  kTwoShotPush,
  kOneShotStaged,
  kTwoShotStaged,
  kOneShotPull,
  kTwoShotPull,
  kIslands
};
enum class StagingChoice { kAuto, kP2p, kHost };
enum class MeasureChoice { kOff, kQuick, kFull };
enum class LogLevel { kOff, kError, kWarn, kInfo, kDebug, kTrace };

struct Settings {
  bool enable = true;
  Algo algo = Algo::kAuto;
  std::vector<uint8_t> islands;  ///< island of each rank; empty: auto
  uint64_t max_bytes = 512 * 1024;
  StagingChoice staging = StagingChoice::kAuto;
  MeasureChoice measure = MeasureChoice::kQuick;
  std::string plan;  ///< path of a plan file
  uint64_t timeout_s = 30 * 60;
  LogLevel log = LogLevel::kInfo;
  std::string log_file;
  bool stats = false;
  std::string stats_file;
};

/// One row of the table.
struct SettingRow {
  const char* name;      ///< of the environment variable
  const char* allowed;   ///< as error lines and the documentation say it
  const char* fallback;  ///< the value where the variable is not set, as text
  bool agree;            ///< must be equal on all ranks of a communicator, else it is declined
  const char* text;      ///< one sentence for the user
  bool (*parse)(std::string_view text, Settings&);  ///< false: not a legal value
  std::string (*show)(const Settings&);             ///< canonical text: equal meaning, equal text
};

std::span<const SettingRow> setting_rows();

/// The settings and what was wrong with the variables. With any error onehop stays off.
struct SettingsReport {
  Settings settings;
  std::vector<std::string> errors;    ///< a line each: variable, value, what is allowed
  std::vector<std::string> warnings;  ///< unknown ONEHOP_ variables, with the nearest known name
};

/// `environment`: a null-terminated array of NAME=value, such as environ.
SettingsReport read_settings(const char* const* environment);
/// The settings of a program that has more rights than whoever started it (AT_SECURE: set-user-ID, file
/// capabilities). Its environment is not its own: it is not read, nor is a file written, and onehop stays
/// off.
SettingsReport settings_of_privileged();

/// Equal on two ranks exactly if all their `agree` settings are.
uint64_t settings_hash(const Settings&);

/// The island of each rank, as ONEHOP_ISLANDS has it: islands divided by '/', ranks by ',', and first-last
/// for several. "auto" for none.
bool parse_islands(std::string_view text, std::vector<uint8_t>& islands);
std::string show_islands(std::span<const uint8_t> islands);

/// docs/settings.md.
std::string settings_markdown();

}  // namespace onehop
