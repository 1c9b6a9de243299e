// The settings of an environment that a test makes up.
#pragma once

#include <string>
#include <vector>

#include "plugin/settings.hpp"

namespace onehop::test {

/// read_settings() of an environment with these entries.
inline SettingsReport settings_of(const std::vector<std::string>& entries) {
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  return read_settings(environment.data());
}

}  // namespace onehop::test
