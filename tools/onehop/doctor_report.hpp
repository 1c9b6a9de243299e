// The facts and findings of `onehop doctor`, for people and for scripts. docs/command.md describes both.
#pragma once

#include <string>
#include <vector>

#include "tools/onehop/findings.hpp"

namespace onehop::tool {

std::string report_text(const Facts&, const std::vector<Finding>&);
std::string report_json(const Facts&, const std::vector<Finding>&);

}  // namespace onehop::tool
